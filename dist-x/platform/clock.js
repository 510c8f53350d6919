export const systemClock = () => Date.now();
//# sourceMappingURL=clock.js.map