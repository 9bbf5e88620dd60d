// The data of the page: JSON, which the build has put into the page as gzip in base64.

async function unpack() {
  const packed = await fetch(`data:;base64,${document.getElementById("data").textContent.trim()}`);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).json();
}

// Waits for the first frame, as unpacking blocks the page; a page in the background is never painted.
if (!document.hidden) await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
const DATA = await unpack().catch((error) => {
  document.querySelector("main").textContent = "This page unpacks the template with DecompressionStream: "
    + `open it in a browser from 2023 or later (${error.message}).`;
  throw error;
});
