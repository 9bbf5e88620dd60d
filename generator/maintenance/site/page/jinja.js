// Runs templates compiled by generator/maintenance/site/compile.py as Jinja runs them for copier.

class UndefinedError extends Error {}

class Jinja {
  // `globals` returns the value of a name; `macros` and `includes` are compiled like templates.
  constructor(globals, macros, includes) {
    this.globals = globals;
    this.macros = macros;
    this.includes = includes;
  }

  render(body) {
    return this.body(body, {});
  }

  call(macro, ...given) {
    const [parameters, body] = this.macros[macro];
    return this.body(body, Object.fromEntries(parameters.map((name, at) => [name, given[at]])));
  }

  // A scope inherits from the one around it; its own variables end with it.
  body(body, scope) {
    return body.map((statement) => this.statement(statement, scope)).join("");
  }

  statement(node, scope) {
    switch (node[0]) {
      case "output":
        return node[1].map((part) => Jinja.text(this.value(part, scope))).join("");
      case "if": {
        for (const [test, body] of node[1]) {
          if (Jinja.truth(this.value(test, scope))) return this.body(body, scope);
        }
        return this.body(node[2], scope);
      }
      case "for":
        return this.loop(node, scope);
      case "set":
        Jinja.bind(scope, node[1], this.value(node[2], scope));
        return "";
      case "setattr":
        this.name(node[1], scope)[node[2]] = this.value(node[3], scope);
        return "";
      case "filterblock": {
        const text = this.body(node[2], Object.create(scope));
        return Jinja.text(this.filter(node[1][1], text, node[1][3], scope));
      }
      case "include": {
        const name = this.value(node[1], scope);
        if (!(name in this.includes)) throw new Error(`there is no file ${name}`);
        return this.body(this.includes[name], Object.create(scope));
      }
    }
    throw new Error(`unknown statement ${node[0]}`);
  }

  loop([, targets, over, test, body, otherwise], scope) {
    let items = Jinja.list(this.value(over, scope));
    const inside = (item) => {
      const inner = Object.create(scope);
      Jinja.bind(inner, targets, item);
      return inner;
    };
    if (test) items = items.filter((item) => Jinja.truth(this.value(test, inside(item))));
    if (!items.length) return this.body(otherwise, Object.create(scope));
    return items.map((item, at) => {
      const inner = inside(item);
      inner.loop = {first: at === 0, last: at === items.length - 1, index: at + 1, index0: at};
      return this.body(body, inner);
    }).join("");
  }

  name(name, scope) {
    if (name in scope) return scope[name];
    const value = this.globals(name);
    if (value === undefined) throw new UndefinedError(`'${name}' is undefined`);
    return value;
  }

  value(node, scope) {
    const value = (part) => this.value(part, scope);
    switch (node[0]) {
      case "text": return node[1];
      case "name": return this.name(node[1], scope);
      case "get": return Jinja.item(value(node[1]), value(node[2]));
      case "slice": {
        const subject = value(node[1]);
        const ends = node.slice(2).map((end) => (end ? value(end) : undefined));
        return typeof subject === "string" ? Array.from(subject).slice(...ends).join("") : subject.slice(...ends);
      }
      case "filter": {
        if (node[1] === "default") return this.defined(node[2], scope) ? value(node[2]) : value(node[3][0]);
        if (node[1] === "to_json") return Jinja.json(value(node[2]), !node[4] || value(node[4].ensure_ascii));
        return this.filter(node[1], value(node[2]), node[3], scope);
      }
      case "test": {
        const known = this.defined(node[2], scope);
        if (node[1] === "defined") return known;
        return Jinja.test(node[1], value(node[2]), node[3].map(value));
      }
      case "method": return Jinja.method(node[1], value(node[2]), node[3].map(value));
      case "call": {
        if (node[1] === "namespace") {
          return Object.fromEntries(Object.entries(node[3]).map(([name, part]) => [name, value(part)]));
        }
        return this.call(node[1], ...node[2].map(value));
      }
      case "compare": return Jinja.compare(node[1], value(node[2]), value(node[3]));
      case "and": {
        const left = value(node[1]);
        return Jinja.truth(left) ? value(node[2]) : left;
      }
      case "or": {
        const left = value(node[1]);
        return Jinja.truth(left) ? left : value(node[2]);
      }
      case "not": return !Jinja.truth(value(node[1]));
      case "add": {
        const [left, right] = [value(node[1]), value(node[2])];
        return Array.isArray(left) ? [...left, ...right] : left + right;
      }
      case "concat": return node[1].map((part) => Jinja.text(value(part))).join("");
      case "choose": return Jinja.truth(value(node[1])) ? value(node[2]) : value(node[3]);
      case "list": return node[1].map(value);
      case "dict": return Object.fromEntries(node[1].map(([key, part]) => [value(key), value(part)]));
    }
    throw new Error(`unknown expression ${node[0]}`);
  }

  defined(node, scope) {
    try {
      this.value(node, scope);
      return true;
    } catch (error) {
      if (error instanceof UndefinedError) return false;
      throw error;
    }
  }

  filter(name, subject, parts, scope) {
    const given = parts.map((part) => this.value(part, scope));
    switch (name) {
      case "first": return Jinja.list(subject)[0];
      case "last": return Jinja.list(subject).at(-1);
      case "list": return Jinja.list(subject);
      case "join": return Jinja.list(subject).map(Jinja.text).join(given[0] ?? "");
      case "length": return Jinja.list(subject).length;
      case "lower": return subject.toLowerCase();
      case "upper": return subject.toUpperCase();
      case "string": return Jinja.text(subject);
      case "title": return Jinja.title(subject);
      case "trim": return Jinja.trim(Jinja.text(subject), given[0]);
      case "replace": return Jinja.text(subject).split(given[0]).join(given[1]);
      case "regex_search": return subject.match(Jinja.pattern(given[0]))?.[0] ?? null;
      case "regex_replace": return subject.replace(Jinja.pattern(given[0], "g"), given[1]);
      case "map": {
        const each = (item) => this.filter(given[0], item, parts.slice(1), scope);
        return Jinja.list(subject).map(each);
      }
      case "select":
        return Jinja.list(subject).filter((item) => Jinja.test(given[0], item, given.slice(1)));
      case "reject":
        return Jinja.list(subject).filter((item) => !Jinja.test(given[0], item, given.slice(1)));
      case "selectattr":
        return Jinja.list(subject).filter((item) => {
          const found = given[0].split(".").reduce((at, key) => at?.[key], item);
          return given.length > 1 ? Jinja.test(given[1], found, given.slice(2)) : Jinja.truth(found ?? null);
        });
    }
    throw new Error(`unknown filter ${name}`);
  }

  static bind(scope, targets, value) {
    if (targets.length === 1) scope[targets[0]] = value;
    else targets.forEach((name, at) => (scope[name] = value[at]));
  }

  static item(subject, key) {
    const at = typeof key === "number" && key < 0 ? subject.length + key : key;
    const found = typeof subject === "object" && subject !== null ? subject[at] : undefined;
    if (found === undefined) throw new UndefinedError(`there is no '${key}'`);
    return found;
  }

  static method(name, subject, given) {
    switch (name) {
      case "items": return Object.entries(subject);
      case "keys": return Object.keys(subject);
      case "values": return Object.values(subject);
      case "get": return subject[given[0]] ?? given[1] ?? null;
      case "split": return given.length ? subject.split(given[0]) : Jinja.trim(subject).split(/\s+/).filter(Boolean);
      case "startswith": return subject.startsWith(given[0]);
    }
    throw new Error(`unknown method ${name}`);
  }

  static test(name, subject, given) {
    switch (name) {
      case "defined": return subject !== undefined;
      case "none": return subject === null;
      case "string": return typeof subject === "string";
      case "in": return Jinja.has(given[0], subject);
    }
    throw new Error(`unknown test ${name}`);
  }

  static compare(operator, left, right) {
    switch (operator) {
      case "eq": return left === right;
      case "ne": return left !== right;
      case "gt": return left > right;
      case "lt": return left < right;
      case "gteq": return left >= right;
      case "lteq": return left <= right;
      case "in": return Jinja.has(right, left);
      case "notin": return !Jinja.has(right, left);
    }
    throw new Error(`unknown comparison ${operator}`);
  }

  static has(whole, part) {
    return typeof whole === "string" || Array.isArray(whole) ? whole.includes(part) : Object.hasOwn(whole, part);
  }

  static list(value) {
    if (typeof value === "string") return Array.from(value);
    return Array.isArray(value) ? value : Object.keys(value);
  }

  static truth(value) {
    if (value === null || typeof value !== "object") return Boolean(value);
    return Jinja.list(value).length > 0;
  }

  static text(value) {
    if (typeof value === "string") return value;
    if (typeof value === "number") return String(value);
    if (typeof value === "boolean") return value ? "True" : "False";
    if (value === null) return "None";
    throw new Error(`${JSON.stringify(value)} is no text`);
  }

  // Python's whitespace, which differs slightly from JavaScript's.
  static trim(text, characters = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005" +
                                 "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000") {
    const kept = Array.from(text);
    while (kept.length && characters.includes(kept[0])) kept.shift();
    while (kept.length && characters.includes(kept.at(-1))) kept.pop();
    return kept.join("");
  }

  static title(text) {
    const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase();
    return text.split(/([-\s({[<]+)/).filter(Boolean).map(capital).join("");
  }

  // Python writes JSON with a blank after commas.
  static json(value, ascii = true) {
    if (Array.isArray(value)) return `[${value.map((item) => Jinja.json(item, ascii)).join(", ")}]`;
    const text = JSON.stringify(value);
    const escaped = (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0");
    return ascii ? text.replace(/[\x80-\uffff]/g, escaped) : text;
  }

  static pattern(source, flags = "") {
    return new RegExp(source.replaceAll("\\Z", "$"), flags);
  }
}
