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

// The JSON that the build has shortened: its most frequent words stand ahead of it, and a byte for each in it.
function lengthened(packed) {
  const letters = new TextDecoder("latin1");
  const end = packed.indexOf(0);
  const bytes = Uint8Array.from({length: 256}, (_, byte) => byte).filter((byte) => byte > 127 || (byte > 1 && byte < 32 && byte !== 10));
  const codes = [...letters.decode(bytes)];
  const words = new Map(letters.decode(packed.subarray(0, end)).split(" ").map((word, at) => [codes[at], word]));
  return letters
    .decode(packed.subarray(end + 1))
    .replace(/[^\0\1\n\x20-\x7f]/g, (code) => words.get(code))
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
