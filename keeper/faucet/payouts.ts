/** Faucet payouts: test collateral and gas for a wallet. Transactions are stored before they are sent. */
import type { Fence } from '../../db/fence.ts'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Call, Calls, Chain, Fee, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import type { FaucetRequest, FaucetStore } from './ports.ts'

export interface FaucetPorts {
  readonly store: FaucetStore
  readonly relayers: RelayerStore
  readonly delivery: Delivery
  readonly chain: Pick<Chain, 'balance'>
  readonly signer: Signer
  readonly calls: Calls
  readonly clock: Clock
  readonly logger: Logger
  readonly fee: () => Fee
  readonly token: Address
  /** Amounts for a request that states none, wei. */
  readonly collateral: bigint
  readonly gas: bigint
}

/** Most requests of one step. */
const PAYOUTS_PER_STEP = 20

/** One pass over the requests. Safe to repeat: a payout is stored in the transaction that marks its request. */
export async function payRequests(
  ports: FaucetPorts,
  lane: RelayerLane,
  fence: Fence,
): Promise<'idle' | 'waiting'> {
  const requests = await ports.store.requested(PAYOUTS_PER_STEP)
  for (const request of requests) await pay(ports, lane, fence, request)
  const open = await ports.relayers.open(lane)
  await ports.delivery.recoverIfDue(fence, open.length > 0)
  await ports.delivery.check(fence, open, () => false)
  await ports.store.finish(lane)
  return open.length > 0 ? 'waiting' : 'idle'
}

async function pay(
  ports: FaucetPorts,
  lane: RelayerLane,
  fence: Fence,
  request: FaucetRequest,
): Promise<void> {
  const { calls, signer, token, clock } = ports
  const fee = ports.fee()
  const wanted = [calls.mint(token, request.to, request.collateral ?? ports.collateral)]
  const gas = request.gas ?? ports.gas
  if (gas > 0n) wanted.push(calls.transfer(request.to, gas))
  if (!(await canPay(ports, wanted, fee))) {
    ports.logger.error({ lane: lane.name, relayer: signer.address }, 'faucet empty; request failed')
    await ports.store.refuse(request, fence)
    return
  }
  const firstNonce = await ports.relayers.reserve(lane, fence, wanted.length)
  const transactions = await Promise.all(wanted.map((call, at) => signer.sign(call, firstNonce + at, fee)))
  const signed = { transactions, firstNonce, signedAt: clock.now() }
  for (const stored of await ports.store.storeSigned(request, lane, fence, signed))
    ports.delivery.start(stored)
}

/** Without it, a key without gas would leave a gap of nonces that no payout passes. Payouts in flight may still need a part of the balance. */
async function canPay({ chain, signer }: FaucetPorts, calls: readonly Call[], fee: Fee): Promise<boolean> {
  const cost = calls.reduce((sum, { value, gas }) => sum + value + gas * fee.maxFeePerGas, 0n)
  return (await chain.balance(signer.address)) >= cost
}
