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
  return JSON.parse(new TextDecoder().decode(new Uint8Array(decoder.memory.buffer, output, size)));
}

// The frame is painted before this takes its time; a page in the background is not painted at all.
if (!document.hidden) await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
const DATA = await unpack(bytes(document.getElementById("data").textContent.trim())).catch((error) => {
  document.querySelector("main").textContent =
    `This page unpacks the template with WebAssembly: open it in a browser that allows that (${error.message}).`;
  throw error;
});
