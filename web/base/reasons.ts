/** Why orders end, in words. By `status_reason`; its own words suffice for every reason that is missing here. */
const REASONS: Readonly<Record<string, string>> = {
  USER_CANCELLED: 'cancelled by you',
  MARKET_REMAINDER: 'rest of a market order',
  PRICE_PROTECTION: 'beyond its protection price',
  IOC_REMAINDER: 'rest of an order for one batch',
  NO_BATCH_IN_TIME: 'no batch took it within 2 s',
  SELF_TRADE: 'would trade with itself',
  REDUCE_ONLY_NO_POSITION: 'no position to reduce',
  DEAD_MAN_SWITCH: 'cancelled by the dead-man switch',
  ENTRY_ENDED: 'the entry that it belongs to has ended',
  EXIT_TRIGGERED: 'the other order of its bracket was triggered',
  EXIT_FILLED: 'the other exit of its bracket has filled',
  POSITION_CLOSED: 'its position is closed',
  SIGNER_REVOKED: 'its session key is revoked',
  SIGNER_EXPIRED: 'its session key has expired',
}

/** A code of the exchange as text: `PENDING_TRIGGER` is "pending trigger". */
export const codeWords = (code: string): string => code.toLowerCase().replace(/_/g, ' ')

export const reasonWords = (reason: string): string => REASONS[reason] ?? codeWords(reason)
