/** Turns recorded prices into the path of a scenario. */
import { readRecording } from '../keeper/adapters/sources/recording.ts'

/** Prices of the path. A longer recording is sampled. */
const LENGTH = 240

/** The recorded prices relative to the first one. */
export async function pathOf(file: string): Promise<number[]> {
  const recording = await readRecording(file)
  const length = Math.min(LENGTH, recording.length)
  const first = Number(recording.first.price)
  return Array.from({ length }, (_, at) => {
    const index = length === 1 ? 0 : Math.floor((at * (recording.length - 1)) / (length - 1))
    return Number(recording.at(index).price) / first
  })
}
