// Loaded before anything is painted, so that a page never flashes in the other colours. Only the choice of a person is stored;
// without one the style sheet follows the system.

try {
  const chosen = localStorage.getItem('theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that stores nothing for this site stores no choice either.
}
