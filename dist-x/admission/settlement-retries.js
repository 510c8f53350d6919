/**
 * Pause before unanswered settlements are sent again. The pause doubles, up to LONGEST_MS, each time Redis still does not answer.
 * Without calls, these retries are the first to notice that Redis answers again (leases are renewed only every 3 s); a longest
 * pause of 1 s lets everything be as before within 2 s of that.
 */
const FIRST_MS = 200;
const LONGEST_MS = 1_000;
/**
 * Settlements and cancellations that had no reply. Each is sent again until it gets one, and counts once, however often it
 * arrives. While Redis is silent, only one batch is sent after each pause, and the pauses grow. So a Redis that wakes up finds a
 * few batches of duplicates, and not each unanswered command many times over.
 */
export class SettlementRetries {
    #port;
    #waiting = [];
    #timer = null;
    #delayMs = FIRST_MS;
    constructor(port) {
        this.#port = port;
    }
    add(command) {
        this.#waiting.push(command);
        this.#timer ??= setTimeout(() => this.#round(), this.#delayMs);
    }
    /** To be called when Redis answers again: sends all waiting commands now. */
    hurry() {
        this.#delayMs = FIRST_MS;
        if (this.#waiting.length === 0)
            return;
        this.stop();
        this.#round();
    }
    stop() {
        if (this.#timer !== null)
            clearTimeout(this.#timer);
        this.#timer = null;
    }
    #round() {
        this.#timer = null;
        const { connected, suspect, probe, send } = this.#port;
        if (suspect() || !connected())
            this.#delayMs = Math.min(this.#delayMs * 2, LONGEST_MS);
        const batch = !connected() ? [] : this.#waiting.splice(0, suspect() ? probe : this.#waiting.length);
        if (this.#waiting.length > 0)
            this.#timer = setTimeout(() => this.#round(), this.#delayMs);
        for (const command of batch)
            send(command);
    }
}
//# sourceMappingURL=settlement-retries.js.map