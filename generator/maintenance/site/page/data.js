// What the page shows: JSON, which the build has put into the page as gzip in base64.

async function unpack() {
  const packed = await fetch(`data:;base64,${document.getElementById("data").textContent.trim()}`);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).json();
}

// The frame is painted before this takes its time; a page in the background is not painted at all.
if (!document.hidden) await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
const DATA = await unpack().catch((error) => {
  document.querySelector("main").textContent = "This page unpacks the template with DecompressionStream: "
    + `open it in a browser from 2023 or later (${error.message}).`;
  throw error;
});
