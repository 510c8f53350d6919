/** First of the fields of a text in Redis. Raised when a field changes its meaning: reports of another version are left out. */
const FORMAT = 1;
export const encodeReport = (report) => JSON.stringify({ format: FORMAT, ...report });
/** Null for what this version does not understand. */
export function decodeReport(text) {
    try {
        const { format, ...report } = JSON.parse(text);
        return format === FORMAT ? report : null;
    }
    catch {
        return null;
    }
}
//# sourceMappingURL=report.js.map