/**
 * KEYS and ARGV of one script run, written straight into the form they travel in. ioredis would copy them into an array,
 * look at the type of each and measure it as UTF-8: 2.9 µs for the sixteen arguments of a call, against 0.7 µs here (24 calls a
 * batch).
 *
 * What is written must be ASCII: lengths are counted in characters and sent as latin1, so that a character beyond it would
 * arrive as another one, but could never shift where the next argument begins.
 */
export class ScriptCall {
  #keys = '';
  #args = '';
  #keyCount = 0;
  #argCount = 0;

  key(name: string): void {
    this.#keys += `$${name.length}\r\n${name}\r\n`;
    this.#keyCount++;
  }

  arg(text: string): void {
    this.#args += `$${text.length}\r\n${text}\r\n`;
    this.#argCount++;
  }

  /** The whole `EVALSHA` command (RESP: an array of bulk strings). */
  encode(sha: string): Buffer {
    const keyCount = String(this.#keyCount);
    const count = 3 + this.#keyCount + this.#argCount;
    return Buffer.from(
      `*${count}\r\n$7\r\nevalsha\r\n$${sha.length}\r\n${sha}\r\n$${keyCount.length}\r\n${keyCount}\r\n${this.#keys}${this.#args}`,
      'latin1',
    );
  }
}
