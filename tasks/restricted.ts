/** Calls that need a role: immediate, or scheduled and executed if the role has a delay. */
import type { Signer } from 'ethers'
import type { ExchangeAccess } from '../typechain-types/ExchangeAccess.ts'

/** Result of a restricted call; `at` in Unix seconds. */
export type RestrictedCallResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'scheduled'; readonly at: number; readonly isNew: boolean }
  | { readonly kind: 'forbidden' }

/** Schedules the call for `from` (Unix seconds) or later; a run after that time executes it. */
export async function callRestricted(
  access: ExchangeAccess,
  signer: Signer,
  { target, data, from = 0 }: { readonly target: string; readonly data: string; readonly from?: number },
): Promise<RestrictedCallResult> {
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
  // The block's time is not known before it is mined, so the schedule adds MARGIN to the delay.
  const at = Math.max(now + Number(delay) + MARGIN, from)
  await (await access.schedule(target, data, at)).wait()
  return { kind: 'scheduled', at, isNew: true }
}

/** Maximum seconds between reading the time and being mined. */
const MARGIN = 60
