/** Kinds of public history files. Each kind has one file per market and day. */
export const HISTORY_KINDS = ['fills', 'auctions', 'candles', 'funding'] as const

export type HistoryKind = (typeof HISTORY_KINDS)[number]
