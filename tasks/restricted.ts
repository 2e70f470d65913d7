/** Calls that need a role: at once, or in two steps where the role acts with a delay. */
import type { Signer } from 'ethers'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'

/** What became of a call: `at` in Unix seconds. */
export type Outcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'scheduled'; readonly at: number; readonly isNew: boolean }
  | { readonly kind: 'forbidden' }

/** Schedules it for `from` (Unix seconds) at the earliest; when that has come, the next run carries it out. */
export async function callRestricted(
  access: ExchangeAccess,
  signer: Signer,
  { target, data, from = 0 }: { readonly target: string; readonly data: string; readonly from?: number },
): Promise<Outcome> {
  const caller = await signer.getAddress()
  const [isImmediate, delay] = await access.canCall(caller, target, data.slice(0, 10))
  const now = (await signer.provider?.getBlock('latest'))?.timestamp ?? 0
  if (isImmediate && now < from) return { kind: 'scheduled', at: from, isNew: false }
  if (isImmediate) {
    await (await signer.sendTransaction({ to: target, data })).wait()
    return { kind: 'done' }
  }
  if (delay === 0n) return { kind: 'forbidden' }
  const standing = Number(await access.getSchedule(await access.hashOperation(caller, target, data)))
  if (standing !== 0 && now >= standing) {
    await (await access.execute(target, data)).wait()
    return { kind: 'done' }
  }
  if (standing !== 0) return { kind: 'scheduled', at: standing, isNew: false }
  // The time of a block is known when it is mined: a little more than the delay is never too early.
  const at = Math.max(now + Number(delay) + MARGIN, from)
  await (await access.schedule(target, data, at)).wait()
  return { kind: 'scheduled', at, isNew: true }
}

/** Seconds between reading the time and being mined. */
const MARGIN = 60
