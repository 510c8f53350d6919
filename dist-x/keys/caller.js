import { unauthorizedError } from '../errors.js';
/** In ascending order of rights: each role may also do what the roles before it may. */
export const ROLES = ['buyer', 'provider', 'admin'];
/** Whether somebody with `role` may grant or revoke what belongs to `other`. */
export function roleCovers(role, other) {
    return ROLES.indexOf(role) >= ROLES.indexOf(other);
}
/** The caller's key, on a route that requires one. Throws `unauthorized` for a caller without a key. */
export function keyOf(caller) {
    if (caller.kind !== 'key')
        throw unauthorizedError();
    return caller.key;
}
//# sourceMappingURL=caller.js.map