// What the gateway and the module that writes the first view of a page (web/src/render.tsx) tell each other. Both sides are
// compiled against this file; it has types only.
export {};
//# sourceMappingURL=site-contract.js.map