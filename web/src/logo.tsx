/** A gate with its bar up, and a call that passes. `public/assets/icon.svg` is the same picture in its own colours. */
export const Logo = () => (
  <svg class="logo" viewBox="0 0 24 24" width="26" height="26" aria-hidden="true">
    <rect class="logo-tile" width="24" height="24" rx="6.5" />
    <rect class="logo-ink" x="5" y="8.6" width="3.6" height="10.4" rx="1.3" />
    <path class="logo-bar" d="M7 9.6 19 5" />
    <circle class="logo-ink" cx="14.6" cy="16.1" r="2.3" />
  </svg>
);
