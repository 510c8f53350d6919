import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, constants, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip, createGzip } from 'node:zlib';
const fileName = (day) => `calls-${day}.ndjson.gz`;
const manifestName = (day) => `calls-${day}.json`;
/** @throws when `dir` is no folder in which this process may make files */
export async function checkExportDir(dir) {
    await readdir(dir);
    await access(dir, constants.W_OK | constants.X_OK);
}
/**
 * Writes the export of a day, reads it back, and compares it with `expected`: what the database says of the day.
 *
 * @param lines pages of JSON texts, one for each call
 * @throws when the file that was read back has other calls or sums. It then has no manifest
 */
export async function exportDay(dir, day, lines, signal) {
    await removeTemporary(dir, day.day);
    const file = path.join(dir, fileName(day.day));
    await rm(path.join(dir, manifestName(day.day)), { force: true });
    await writeWhole(file, (temporary) => writeLines(temporary, lines, signal));
    const { bytes, sha256, ...sums } = await readBack(file, day.day, signal);
    const { calls, amount, fees } = day.expected;
    if (sums.calls !== calls || sums.amount !== amount || sums.fees !== fees) {
        const text = ({ calls, amount, fees }) => `${calls} calls of ${amount} with fees of ${fees}`;
        throw new Error(`the export of ${day.day} has ${text(sums)}, but the database has ${text(day.expected)}`);
    }
    const manifest = {
        format: 1,
        installation: day.installation,
        day: day.day,
        file: fileName(day.day),
        calls,
        amount,
        fees,
        bytes,
        sha256,
    };
    await writeWhole(path.join(dir, manifestName(day.day)), (temporary) => writeFile(temporary, `${JSON.stringify(manifest, null, 2)}\n`, { flag: 'wx' }));
    return manifest;
}
/** What processes that were killed have left. A process that only lost its lock fails when it comes to the renaming. */
async function removeTemporary(dir, day) {
    const names = (await readdir(dir)).filter((name) => name.startsWith(`calls-${day}.`) && name.endsWith('.tmp'));
    for (const name of names)
        await rm(path.join(dir, name), { force: true });
}
async function writeWhole(file, write) {
    const temporary = `${file}.${randomUUID()}.tmp`;
    try {
        await write(temporary);
        await sync(temporary, 'r+');
        await rename(temporary, file);
    }
    catch (error) {
        await rm(temporary, { force: true });
        throw error;
    }
    // The name is on the disk only once the folder is.
    await sync(path.dirname(file), 'r');
}
async function sync(name, flags) {
    const handle = await open(name, flags);
    try {
        await handle.sync();
    }
    finally {
        await handle.close();
    }
}
async function writeLines(file, pages, signal) {
    async function* texts() {
        for await (const page of pages)
            yield `${page.join('\n')}\n`;
    }
    await pipeline(Readable.from(texts()), createGzip(), createWriteStream(file, { flags: 'wx', mode: 0o640 }), {
        signal,
    });
}
/** @throws when the file is not whole, or has a line that is no call of the day, or a call twice */
async function readBack(file, day, signal) {
    const hash = createHash('sha256');
    let bytes = 0;
    let [calls, amount, fees] = [0, 0, 0];
    let last = '';
    const addLine = (text) => {
        const call = JSON.parse(text);
        if (call.day !== day || call.usage_id <= last)
            throw new Error(`the export of ${day} has a wrong line: ${text}`);
        last = call.usage_id;
        calls += 1;
        amount += call.amount;
        fees += call.fee;
    };
    async function* hashed(chunks) {
        for await (const chunk of chunks) {
            hash.update(chunk);
            bytes += chunk.length;
            yield chunk;
        }
    }
    async function add(chunks) {
        const decoder = new StringDecoder('utf8');
        let rest = '';
        for await (const chunk of chunks) {
            const parts = (rest + decoder.write(chunk)).split('\n');
            rest = parts.pop();
            for (const part of parts)
                addLine(part);
        }
        if (rest + decoder.end() !== '')
            throw new Error(`the export of ${day} is cut off`);
    }
    await pipeline(createReadStream(file), hashed, createGunzip(), add, { signal });
    return { calls, amount, fees, bytes, sha256: hash.digest('hex') };
}
//# sourceMappingURL=export-file.js.map