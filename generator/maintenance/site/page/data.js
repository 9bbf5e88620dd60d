// What the page shows, out of the element in which the build has packed it.

// Characters from ! to ~ without < stand for bits, the first 35 for 6, the others for 7.
function bytes(id) {
  const text = document.getElementById(id).textContent.trim();
  const found = new Uint8Array((text.length * 7) >> 3);
  let [bits, count, size] = [0, 0, 0];
  for (let at = 0; at < text.length; ++at) {
    const character = text.charCodeAt(at);
    const letter = character - (character > 60 ? 34 : 33);
    const length = letter < 35 ? 6 : 7;
    bits = (bits << length) | (letter < 35 ? letter : letter + 35);
    count += length;
    if (count < 8) continue;
    count -= 8;
    found[size++] = bits >> count;
    bits &= 255;
  }
  return found.subarray(0, size);
}

// Ahead of the packed text stands how many characters it has.
async function unpack() {
  const {instance} = await WebAssembly.instantiate(bytes("packer"));
  const packer = instance.exports;
  const packed = bytes("data");
  const count = new DataView(packed.buffer).getUint32(0, true);
  const body = packed.subarray(4);
  const [input, output] = [packer.allocate(body.length), packer.allocate_text(count)];
  new Uint8Array(packer.memory.buffer).set(body, input);
  if (!packer.unpack(input, body.length, output, count)) throw new Error("there is too little memory");
  return JSON.parse(lengthened(new Uint8Array(packer.memory.buffer, output, 2 * count)));
}

// The JSON that the build has shortened: its most frequent words stand ahead of it, and characters for them in it.
function lengthened(characters) {
  const text = new TextDecoder("utf-16le").decode(characters);
  const end = text.indexOf("\0");
  const words = text.slice(0, end).split(" ");
  return text
    .slice(end + 1)
    .replace(/[^\0-\x7f]/g, (character) => words[character.charCodeAt(0) - 128])
    .replace(/\x02([a-z]+)/g, (_, word) => word.toUpperCase())
    .replace(/\x01./g, (pair) => pair[1].toUpperCase())
    .replaceAll("\n", "\\n");
}

// The frame is painted before this takes its time; a page in the background is not painted at all.
if (!document.hidden) await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
const DATA = await unpack().catch((error) => {
  document.querySelector("main").textContent =
    `This page unpacks the template with WebAssembly: open it in a browser that allows that (${error.message}).`;
  throw error;
});
