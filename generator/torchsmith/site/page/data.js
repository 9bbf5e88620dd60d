// What the page shows, out of the element in which the build has packed it.

function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

// Ahead of the packed text stand the order and the memory of its model, and how many bytes it has.
async function unpack(packed) {
  const header = new DataView(packed.buffer);
  const [order, memory, size] = [header.getUint8(0), header.getUint32(1, true), header.getUint32(5, true)];
  const body = packed.subarray(9);
  const {instance} = await WebAssembly.instantiate(bytes(PPMD7));
  const decoder = instance.exports;
  const [input, output] = [decoder.allocate(body.length), decoder.allocate(size)];
  new Uint8Array(decoder.memory.buffer).set(body, input);
  const decoded = decoder.decode(input, body.length, output, size, order, memory);
  if (decoded !== size) throw new Error(`${decoded} of ${size} bytes could be unpacked`);
  return JSON.parse(lengthened(new Uint8Array(decoder.memory.buffer, output, size)));
}

// The JSON that the build has shortened: its most frequent words stand ahead of it, and codes for them in it, of a byte
// first and of two then.
function lengthened(packed) {
  const letters = new TextDecoder("latin1");
  const range = (from, to) => Array.from({length: to - from}, (_, at) => from + at);
  const codes = [...range(7, 10), ...range(11, 32), ...range(128, 256)].map((code) => [code]);
  for (const first of [3, 4, 5, 6]) codes.push(...[...range(32, 127), ...range(128, 256)].map((second) => [first, second]));
  const text = (bytes) => letters.decode(Uint8Array.from(bytes));
  const end = packed.indexOf(0);
  const words = new Map(text(packed.subarray(0, end)).split(" ").map((word, at) => [text(codes[at]), word]));
  return text(packed.subarray(end + 1))
    .replace(/[\x03-\x06][^]|[^\0\1\2\n\x20-\x7f]/g, (code) => words.get(code))
    .replace(/\x02([a-z]+)/g, (_, word) => word.toUpperCase())
    .replace(/\x01./g, (pair) => pair[1].toUpperCase())
    .replaceAll("\n", "\\n");
}

// The frame is painted before this takes its time; a page in the background is not painted at all.
if (!document.hidden) await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
const DATA = await unpack(bytes(document.getElementById("data").textContent.trim())).catch((error) => {
  document.querySelector("main").textContent =
    `This page unpacks the template with WebAssembly: open it in a browser that allows that (${error.message}).`;
  throw error;
});
