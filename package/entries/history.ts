/** Files of the public history: their list, and downloads whose digests are checked. */
export { type HistoryOptions, PublicHistory } from '../../client/public-history.ts'
