/* A site that was built without its address names its own files, such as wheels, by
 * their names alone. Here they get the address that the page was loaded from. */
(() => {
  "use strict";

  const files = new Map();
  for (const link of document.querySelectorAll("code.install > a")) {
    files.set(link.textContent, link.href);
    link.textContent = link.href;
  }
  if (!files.size) return;
  for (const program of document.querySelectorAll("pre.program")) {
    const text = program.firstChild;
    const line = text?.data?.match(/^# pip install .*$/m)?.[0];
    if (!line) continue;
    const whole = line.split(" ").map((word) => files.get(word) ?? word).join(" ");
    text.data = text.data.replace(line, () => whole);
  }
})();
