"use strict";
// What the page shows, out of the element in which the build has packed it.

function unpack(text) {
  const compressed = Uint8Array.from(atob(text), character => character.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(fzstd.decompress(compressed)));
}

const DATA = unpack(document.getElementById("data").textContent.trim());
