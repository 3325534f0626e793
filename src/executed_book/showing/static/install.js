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

  /* A notebook is taken away, so it gets the whole addresses too. */
  async function takeNotebook(event) {
    const link = event.currentTarget;
    event.preventDefault();
    const answer = await fetch(link.href).catch(() => null); // not from a disk
    if (!answer?.ok) {
      location.assign(link.href);
      return;
    }
    let text = (await answer.text()).replaceAll("  # put this file beside the notebook", "");
    for (const [name, address] of files) text = text.replaceAll(`./${name}`, address);
    const taken = document.createElement("a");
    taken.href = URL.createObjectURL(new Blob([text], { type: "application/x-ipynb+json" }));
    taken.download = link.href.split("/").at(-1);
    taken.click();
  }

  for (const link of document.querySelectorAll("a[href$='.ipynb']")) {
    link.addEventListener("click", takeNotebook);
  }
})();
