import { bulk, bulkHead } from '../platform/trip-encoder.js';
import { HOLD_LEFT, NO_HOLD, NOT_CLOSED, OK, REFUSALS, rateState, SETTLED, SETTLED_BESIDE_WALLET, } from './codes.js';
/**
 * How often a command is sent again after its key or wallet was loaded from Postgres; then it ends as 'unavailable'. If three
 * loads do not suffice, something deletes the state from Redis as fast as the gateway loads it.
 */
const MAX_LOADS = 3;
const UNAVAILABLE = { outcome: 'unavailable' };
const OF_KEY = bulk('0');
export class TakeCommand {
    keyId;
    /** The account of the key; without a key (`keyId` null), the address whose bucket is used. */
    subject;
    /** Requests per minute of the address. 0 for a key: its limit is in Redis. */
    addressLimit;
    done;
    loads = 0;
    constructor(keyId, subject, addressLimit, done) {
        this.keyId = keyId;
        this.subject = subject;
        this.addressLimit = addressLimit;
        this.done = done;
    }
    encode(batch, { keys: names }) {
        if (this.keyId === null) {
            batch.command('T', bulk(names.ip(this.subject)), 1, bulk(String(this.addressLimit)), 1, 3);
        }
        else {
            batch.command('T', bulk(names.key(names.shardOf(this.subject), this.keyId)), 1, OF_KEY, 1, 3);
        }
    }
    onReply(reply, at, host) {
        const code = reply[at];
        const rate = rateState(reply[at + 1], reply[at + 2]);
        if (code === OK)
            this.done({ outcome: 'taken', rate });
        else
            this.#refuse(code, rate, host);
        return at + 3;
    }
    #refuse(code, rate, host) {
        const refusal = REFUSALS[code];
        switch (refusal?.does) {
            case 'load':
                if (++this.loads > MAX_LOADS)
                    this.done(UNAVAILABLE);
                else
                    host.reloadAndRetry(this, refusal.what);
                return;
            case 'refuse':
                this.done({ outcome: refusal.outcome, rate });
                return;
            case 'fail':
                if (refusal.damage !== undefined)
                    host.foundDamage(refusal.damage, this.subject, this.keyId ?? '');
                this.done(UNAVAILABLE);
                return;
            // 'refuse_call' is as unknown as no row: no token is refused like that.
            default:
                host.foundUnknownCode(code);
                this.done(UNAVAILABLE);
        }
    }
    onLost() {
        this.done(UNAVAILABLE);
    }
}
export class AdmitCommand {
    request;
    #listener;
    loads = 0;
    constructor(request, listener) {
        this.request = request;
        this.#listener = listener;
    }
    done(result) {
        this.#listener.onAdmission(result);
    }
    encode(batch) {
        const { usageId, buyer, terms, method, path } = this.request;
        const { keyId, accountId } = buyer;
        const tabs = 4;
        const tail = accountId.length + keyId.length + terms.hold.length + method.length + path.length + tabs;
        batch.terms(terms);
        batch.command('A', buyer.admitKeys, 3, `${bulk(usageId)}${bulkHead(tail)}${accountId}\t${keyId}\t${terms.hold}\t${method}\t${path}\r\n`, 2, 5);
    }
    onReply(reply, at, host) {
        const code = reply[at];
        const rate = rateState(reply[at + 1], reply[at + 2]);
        const balanceMicros = reply[at + 3];
        if (code === OK) {
            const freeTier = reply[at + 4] === 1;
            const amountMicros = freeTier ? 0 : this.request.terms.priceMicros;
            this.done({ outcome: 'admitted', rate, amountMicros, freeTier, balanceMicros, owner: host.admitted() });
        }
        else {
            this.#refuse(code, rate, balanceMicros, host);
        }
        return at + 5;
    }
    #refuse(code, rate, balanceMicros, host) {
        const refusal = REFUSALS[code];
        if (refusal === undefined) {
            // Whatever the code means, the call is not admitted here. If the script has opened a hold, the cancellation ends it.
            host.foundUnknownCode(code);
            host.cancel(this);
            this.done(UNAVAILABLE);
            return;
        }
        if (refusal.does === 'load') {
            if (++this.loads > MAX_LOADS)
                this.done(UNAVAILABLE);
            else
                host.reloadAndRetry(this, refusal.what);
            return;
        }
        const { damage } = refusal;
        const { buyer, usageId } = this.request;
        if (damage !== undefined)
            host.foundDamage(damage, buyer.accountId, damage === 'key' ? buyer.keyId : usageId);
        this.done(refusal.does === 'fail' ? UNAVAILABLE : { outcome: refusal.outcome, rate, balanceMicros });
    }
    onLost(sent, host) {
        if (sent)
            host.cancel(this);
        this.done(UNAVAILABLE);
    }
}
/**
 * Handles the unusual replies to a settlement or a cancellation: damage, or any reply to a command that Redis had refused before.
 * The usual replies, 'settled now' and 'no hold', do not come here. After a code that nobody knows, the command is not sent again;
 * if its hold is still there, the sweep ends it once its owner's lease has run out.
 */
function closedAtLast(code, command, accountId, host) {
    const { usageId } = command;
    if (code === NOT_CLOSED) {
        host.foundDamage('shard', accountId, usageId);
        host.retryRefused(command, accountId);
        command.wasRefused = true;
        return;
    }
    if (code === HOLD_LEFT)
        host.foundDamage('hold', accountId, usageId);
    else if (code === SETTLED_BESIDE_WALLET)
        host.foundDamage('wallet', accountId, usageId);
    else if (code !== SETTLED && code !== NO_HOLD)
        host.foundUnknownCode(code);
    command.done();
    if (command.wasRefused)
        host.mended(accountId);
}
export class SettleCommand {
    usageId;
    buyer;
    refund;
    settlement;
    done;
    wasRefused = false;
    /** True when this command was sent before and got no reply. If the hold is gone, that attempt has probably settled the call. */
    #isRetry = false;
    constructor(usageId, buyer, refund, settlement, done) {
        this.usageId = usageId;
        this.buyer = buyer;
        this.refund = refund;
        this.settlement = settlement;
        this.done = done;
    }
    encode(batch, { encodedKeys }) {
        const args = bulk(this.usageId) + bulk(this.settlement);
        if (this.refund)
            batch.command('R', encodedKeys.refund(this.buyer.accountId), 3, args, 2, 1);
        else
            batch.command('S', this.buyer.settleKeys, 2, args, 2, 1);
    }
    onReply(reply, at, host) {
        const code = reply[at];
        if (code === NO_HOLD && !this.#isRetry)
            host.settledElsewhere();
        if (code < SETTLED_BESIDE_WALLET && !this.wasRefused)
            this.done();
        else
            closedAtLast(code, this, this.buyer.accountId, host);
        return at + 1;
    }
    onLost(sent, host) {
        this.#isRetry ||= sent;
        host.retrySettlement(this);
    }
}
export class CancelCommand {
    usageId;
    accountId;
    settlement;
    done;
    wasRefused = false;
    constructor(usageId, accountId, settlement, done) {
        this.usageId = usageId;
        this.accountId = accountId;
        this.settlement = settlement;
        this.done = done;
    }
    encode(batch, { encodedKeys }) {
        batch.command('C', encodedKeys.refund(this.accountId), 3, bulk(this.usageId) + bulk(this.settlement), 2, 1);
    }
    onReply(reply, at, host) {
        const code = reply[at];
        if (code < SETTLED_BESIDE_WALLET && !this.wasRefused)
            this.done();
        else
            closedAtLast(code, this, this.accountId, host);
        return at + 1;
    }
    onLost(_sent, host) {
        host.retrySettlement(this);
    }
}
/** Renews an instance's lease in one shard, and the tombstone that keeps Redis from deleting the shard's empty hash of holds. */
export class LeaseCommand {
    shard;
    instance;
    constructor(shard, instance) {
        this.shard = shard;
        this.instance = instance;
    }
    encode(batch, { keys: names }) {
        const [lease, open] = [names.lease[this.shard], names.open[this.shard]];
        batch.command('L', bulk(lease) + bulk(open), 2, bulk(this.instance), 1, 0);
    }
    onReply(_reply, at) {
        return at;
    }
    onLost() { }
}
//# sourceMappingURL=commands.js.map