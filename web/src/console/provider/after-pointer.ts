let isDown = false;
const watch = (name: 'pointerdown' | 'pointerup' | 'pointercancel', down: boolean): void =>
  addEventListener(
    name,
    () => {
      isDown = down;
    },
    { capture: true },
  );
watch('pointerdown', true);
watch('pointerup', false);
watch('pointercancel', false);

/**
 * Acts at once, or while a pointer is down after the click that it makes. Pressing it takes the focus from a field; an error that
 * appeared there at that moment would move what is being clicked away from under it.
 */
export function afterPointer(act: () => void): void {
  if (!isDown) {
    act();
    return;
  }
  const late = (): void => {
    removeEventListener('pointerup', late);
    removeEventListener('pointercancel', late);
    setTimeout(act);
  };
  addEventListener('pointerup', late);
  addEventListener('pointercancel', late);
}
