/** The page of a refused form: its link goes back in the history, where the visitor's entries are kept. In a new tab there is none. */
document.querySelector("a.button")?.addEventListener("click", (event) => {
  if (history.length === 1) return;
  event.preventDefault();
  history.back();
});
