// The rendered project as an archive, made in the browser.

const UNIX = 3;
// Equal answers give equal bytes: the first day that an archive can name.
const DAY = new Date(1980, 0, 1);

function zipped(answers) {
  const folder = interpreter(answers).globals("distribution");
  const entries = rendered(answers).map(({path, text, executable}) => {
    const mode = executable ? 0o100755 : 0o100644;
    return [`${folder}/${path}`, [fflate.strToU8(text), {os: UNIX, attrs: mode << 16, mtime: DAY}]];
  });
  return fflate.zipSync(Object.fromEntries(entries));
}
