/** That of package.json, which is not beside the compiled code everywhere. test/routes/version.test.ts compares them. */
export const VERSION = '0.1.0';
//# sourceMappingURL=version.js.map