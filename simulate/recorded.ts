/** Reads recordings of prices, of which scenarios take excerpts. */
import { basename } from 'node:path'
import type { MarketKind } from '../domain/market/market.ts'
import { readRecording } from '../keeper/adapters/sources/recording.ts'

export interface Recorded {
  /** That of the file. */
  readonly name: string
  readonly kind: MarketKind
  /** A price within 0 and 1 is a probability. */
  readonly prices: readonly number[]
}

export async function readRecorded(file: string): Promise<Recorded> {
  const recording = await readRecording(file)
  const prices = Array.from({ length: recording.length }, (_, at) => Number(recording.at(at).price) / 1e18)
  const isProbability = prices.every((price) => price <= 1)
  const name = basename(file).replace(/\.csv(\.gz)?$/, '')
  return { name, kind: isProbability ? 'binary_future' : 'perpetual', prices }
}
