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
 * Acts at once, or if a pointer is pressed, after its click. Pressing takes the focus from a field; if an error appeared at that
 * moment, it would move the click's target away.
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
