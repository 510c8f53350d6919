import { assert } from '../assert.ts';
import { stepEnd, turns } from '../platform/turns.ts';
import type { Listing } from './listing.ts';
import { isSameProfile, type Profile } from './providers/profile.ts';
import { isSameQuality, type Quality, UNKNOWN_QUALITY } from './quality.ts';

/** Percent of health checks with a good answer. */
export type Uptime = { readonly last_24_hours?: number; readonly last_30_days: number };

/** What pages show in addition to a listing. */
export type Beside = {
  readonly quality: Quality;
  /** Absent unless the service has a health path and was asked. */
  readonly uptime: Uptime | undefined;
  /** What the provider says about itself; null: nothing. */
  readonly profile: Profile | null;
  /** How many active listings the provider has. Searches do not show it. */
  readonly services: number;
};

export const NOTHING_BESIDE: Beside = { quality: UNKNOWN_QUALITY, uptime: undefined, profile: null, services: 0 };

/** Whether searches show the same for both. Each part remains the same object until it changes. */
export const isUnchanged = (a: Beside, b: Beside): boolean =>
  a.quality === b.quality && a.uptime === b.uptime && a.profile === b.profile;

/**
 * What is known about each service and its provider apart from the listing. It changes at other times, and only the catalog's pages
 * read it. So a change here makes no new listing, and everything that calls have cached by listing stays valid.
 */
export class BesideListings {
  readonly #qualities: Values<Quality>;
  readonly #uptimes: Values<Uptime | undefined>;
  /** By account. */
  readonly #profiles: Values<Profile | null>;
  readonly #activeOf: (providerId: string) => readonly string[];

  /**
   * @param onChange called with the id of each service for which something has changed
   * @param activeOf  the ids of a provider's active listings
   */
  constructor(onChange: (id: string) => void, activeOf: (providerId: string) => readonly string[]) {
    this.#activeOf = activeOf;
    this.#profiles = new Values<Profile | null>(null, isSameProfile, (providerId) =>
      activeOf(providerId).forEach(onChange),
    );
    this.#qualities = new Values(UNKNOWN_QUALITY, isSameQuality, onChange);
    this.#uptimes = new Values<Uptime | undefined>(undefined, isSameUptime, onChange);
  }

  of({ id, providerId }: Pick<Listing, 'id' | 'providerId'>): Beside {
    return {
      quality: this.qualityOf(id),
      uptime: this.#uptimes.of(id),
      profile: this.#profiles.of(providerId),
      services: this.#activeOf(providerId).length,
    };
  }

  qualityOf(id: string): Quality {
    return this.#qualities.of(id);
  }

  /** Applies the qualities of some services; the others keep theirs. Resolves when all are applied. */
  setQualities(qualities: ReadonlyMap<string, Quality>): Promise<void> {
    for (const { value } of qualities.values())
      assert(value >= 0 && value <= 100, 'a quality is a number from 0 to 100');
    return this.#qualities.set(qualities);
  }

  /** Applies the uptimes of all services that have one. Resolves when all are applied. */
  setUptimes(uptimes: ReadonlyMap<string, Uptime>): Promise<void> {
    return this.#uptimes.replace(uptimes);
  }

  /**
   * Applies the profiles of some accounts, and resolves when all are applied.
   *
   * @param profiles by account; null: the account has no profile
   * @param isAll whether no other account has a profile
   */
  setProfiles(profiles: ReadonlyMap<string, Profile | null>, isAll = false): Promise<void> {
    return isAll ? this.#profiles.replace(profiles) : this.#profiles.set(profiles);
  }
}

const isSameUptime = (a: Uptime | undefined, b: Uptime | undefined): boolean =>
  a?.last_24_hours === b?.last_24_hours && a?.last_30_days === b?.last_30_days;

/** Values by id. An update may contain all of them although few have changed, so it works in steps of a millisecond. */
class Values<T> {
  readonly #known = new Map<string, T>();
  readonly #none: T;
  readonly #isSame: (a: T, b: T) => boolean;
  readonly #onChange: (id: string) => void;

  /** @param none the value where nothing is known */
  constructor(none: T, isSame: (a: T, b: T) => boolean, onChange: (id: string) => void) {
    this.#none = none;
    this.#isSame = isSame;
    this.#onChange = onChange;
  }

  of(id: string): T {
    return this.#known.get(id) ?? this.#none;
  }

  async set(values: ReadonlyMap<string, T>): Promise<void> {
    await inSteps(values.entries(), ([id, value]) => {
      if (this.#isSame(this.of(id), value)) return;
      if (this.#isSame(this.#none, value)) this.#known.delete(id);
      else this.#known.set(id, value);
      this.#onChange(id);
    });
  }

  async replace(values: ReadonlyMap<string, T>): Promise<void> {
    await this.set(values);
    await inSteps(this.#known.keys(), (id) => {
      if (!values.has(id) && this.#known.delete(id)) this.#onChange(id);
    });
  }
}

async function inSteps<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
  let isOver = stepEnd();
  let n = 0;
  for (const item of items) {
    work(item);
    if (++n % 32 === 0 && isOver()) {
      await turns.nextAhead();
      isOver = stepEnd();
    }
  }
}
