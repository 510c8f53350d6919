/** A score from fewer buyers would say more about them than about the service. */
const ENOUGH = 5;

/** Whether so few buyers have called the service that its quality says little. */
export const hasFewBuyers = (of: { readonly track_record?: { readonly buyers: number } | undefined }): boolean =>
  of.track_record !== undefined && of.track_record.buyers < ENOUGH;
