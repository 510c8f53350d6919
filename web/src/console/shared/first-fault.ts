/** Once the errors are in the page, the first field that has one gets the focus: of the dialog, if one is open. */
export function showFirstFault(): void {
  requestAnimationFrame(() => {
    const form = document.querySelector('dialog[open]') ?? document;
    const field = form.querySelector<HTMLElement>('[aria-invalid="true"]');
    field?.closest('details')?.setAttribute('open', '');
    field?.focus();
  });
}
