"use strict";
// Writes answers as PyYAML does, so that the answers file shown is the one that copier writes.

const YAML = (() => {
  const WIDTH = 80;
  const INDENT = "    ";
  const BREAKS = "\n\x85\u2028\u2029";
  const ESCAPES = {
    "\0": "0", "\x07": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e",
    '"': '"', "\\": "\\", "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
  };

  // Plain text that a reader would take for something other than a string.
  const OTHER = [
    /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
    /^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)$/,
    /^(?:[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
    /^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$/,
    /^[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+$/,
    /^(?:<<|=|~|null|Null|NULL|)$/,
    /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/,
    new RegExp(
      "^[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \\t]+)[0-9][0-9]?:[0-9][0-9]:[0-9][0-9](?:\\.[0-9]*)?" +
      "(?:[ \\t]*(?:Z|[-+][0-9][0-9]?(?::[0-9][0-9])?))?$"),
  ];

  const among = (character, set) => character !== undefined && set.includes(character);
  const printable = (code) =>
    code === 0x85 || (code >= 0xa0 && code <= 0xd7ff) ||
    (code >= 0xe000 && code <= 0xfffd && code !== 0xfeff) || (code >= 0x10000 && code < 0x10ffff);

  // "plain", "single" or "double": the plainest way that reads back as the same text.
  function style(characters) {
    if (!characters.length) return "single";
    const blank = "\0 \t\r\n\x85\u2028\u2029";
    const text = characters.join("");
    let plain = !text.startsWith("---") && !text.startsWith("...");
    let single = true;
    characters.forEach((character, at) => {
      const next = characters[at + 1];
      const followed = next === undefined || blank.includes(next);
      if (at === 0) {
        if ("#,[]{}&*!|>'\"%@`".includes(character)) plain = false;
        if ("?:-".includes(character) && followed) plain = false;
      } else {
        if (character === ":" && followed) plain = false;
        if (character === "#" && blank.includes(characters[at - 1])) plain = false;
      }
      if (BREAKS.includes(character)) plain = false;
      const code = character.codePointAt(0);
      if (character !== "\n" && !(code >= 0x20 && code <= 0x7e) && !printable(code)) plain = single = false;
      if (BREAKS.includes(characters[at - 1] ?? "x") && character === " ") plain = single = false;
      if (characters[at - 1] === " " && BREAKS.includes(character)) plain = single = false;
    });
    if (" ".includes(characters[0]) || characters.at(-1) === " ") plain = false;
    if (plain && OTHER.some((pattern) => pattern.test(text))) plain = false;
    return plain ? "plain" : single ? "single" : "double";
  }

  // A text behind a key that ends at `column`; lines longer than WIDTH are folded where there is one blank.
  function scalar(text, column) {
    const characters = Array.from(text);
    const chosen = style(characters);
    let out = "";
    const write = (more) => {
      out += more;
      column += Array.from(more).length;
    };
    const fold = () => {
      out += "\n" + INDENT;
      column = INDENT.length;
    };
    write(" ");
    if (chosen === "double") double(characters, write, fold, () => column);
    else flow(characters, chosen === "single", write, fold, () => column);
    return out;
  }

  function flow(characters, quoted, write, fold, column) {
    if (quoted) write("'");
    let start = 0;
    let spaces = false;
    let breaks = false;
    for (let end = 0; end <= characters.length; end++) {
      const character = characters[end];
      if (spaces) {
        if (character !== " ") {
          const inside = !quoted || (start !== 0 && end !== characters.length);
          if (start + 1 === end && column() > WIDTH && inside) fold();
          else write(characters.slice(start, end).join(""));
          start = end;
        }
      } else if (breaks) {
        if (!among(character, BREAKS)) {
          if (characters[start] === "\n") write("\n");
          write(characters.slice(start, end).join(""));
          write(INDENT);
          start = end;
        }
      } else if (character === undefined || character === " " || BREAKS.includes(character) ||
                 (quoted && character === "'")) {
        write(characters.slice(start, end).join(""));
        start = end;
      }
      if (quoted && character === "'") {
        write("''");
        start = end + 1;
      }
      if (character !== undefined) {
        spaces = character === " ";
        breaks = BREAKS.includes(character);
      }
    }
    if (quoted) write("'");
  }

  function double(characters, write, fold, column) {
    write('"');
    let start = 0;
    for (let end = 0; end <= characters.length; end++) {
      const character = characters[end];
      const code = character?.codePointAt(0);
      const plain = (code >= 0x20 && code <= 0x7e) || (printable(code) && code <= 0xffff);
      if (character === undefined || '"\\\x85\u2028\u2029\ufeff'.includes(character) || !plain) {
        if (start < end) {
          write(characters.slice(start, end).join(""));
          start = end;
        }
        if (character !== undefined) {
          const hex = code.toString(16).toUpperCase();
          if (character in ESCAPES) write("\\" + ESCAPES[character]);
          else if (code <= 0xff) write("\\x" + hex.padStart(2, "0"));
          else if (code <= 0xffff) write("\\u" + hex.padStart(4, "0"));
          else write("\\U" + hex.padStart(8, "0"));
          start = end + 1;
        }
      }
      if (end > 0 && end < characters.length - 1 && (character === " " || start >= end) &&
          column() + (end - start) > WIDTH) {
        write(characters.slice(start, end).join("") + "\\");
        if (start < end) start = end;
        fold();
        if (characters[start] === " ") write("\\");
      }
    }
    write('"');
  }

  // A mapping of texts and lists of plain words, its keys in order.
  function dump(mapping) {
    return Object.keys(mapping).sort().map((key) => {
      const value = mapping[key];
      if (!Array.isArray(value)) return `${key}:${scalar(value, key.length + 1)}\n`;
      return value.length ? `${key}:\n${value.map((item) => `- ${item}\n`).join("")}` : `${key}: []\n`;
    }).join("");
  }

  return {dump};
})();
