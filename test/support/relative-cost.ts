/** Processor time in units of a native signature of the same run, so that a bound holds on every machine. */
import { keccak, sign } from '../../service/crypto.ts'

const KEY = new Uint8Array(32).fill(0x11)
const DIGEST = keccak(KEY).slice()
const ROUNDS = 40
const PER_ROUND = 20

type Work = () => unknown

async function roundOf(work: Work): Promise<number> {
  const start = process.cpuUsage()
  for (let at = 0; at < PER_ROUND; at++) await work()
  const { user, system } = process.cpuUsage(start)
  return user + system
}

/** The work's processor time, in native signatures: the best of several rounds, of work and signature in turn. */
export async function costInSignatures(work: Work): Promise<number> {
  let [own, native] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  // The first rounds compile the code.
  for (let round = 0; round < 2 * ROUNDS; round++) {
    own = Math.min(own, await roundOf(work))
    native = Math.min(native, await roundOf(() => sign(DIGEST, KEY)))
  }
  return own / native
}
