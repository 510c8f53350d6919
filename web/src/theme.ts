// Loaded before anything is painted, so that a page never flashes in the other colours, nor offers to sign in to somebody who probably
// is. Only the choice of a person is stored; without one the style sheet follows the system.

try {
  const chosen = localStorage.getItem('theme');
  const { dataset } = document.documentElement;
  if (chosen === 'light' || chosen === 'dark') dataset.theme = chosen;
  if (localStorage.getItem('tollgate.session') !== null) dataset.known = '';
} catch {
  // A browser that stores nothing for this site stores no choice either.
}
