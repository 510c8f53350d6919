/** @returns a function that runs work, at most `most` at a time; the others wait in the order in which they came */
export function limit(most) {
    let running = 0;
    const waiting = [];
    return async (work) => {
        if (running >= most)
            await new Promise((resolve) => waiting.push(resolve));
        else
            running++;
        try {
            return await work();
        }
        finally {
            // Who waits longest takes over the place.
            const next = waiting.shift();
            if (next === undefined)
                running--;
            else
                next();
        }
    };
}
//# sourceMappingURL=limit.js.map