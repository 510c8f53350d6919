/** The argument that tells a process it is supervised: `main.js gateway supervised 2`, `main.js writer supervised`. */
export const SUPERVISED = 'supervised';
//# sourceMappingURL=messages.js.map