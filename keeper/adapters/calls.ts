/** Encodes the keeper's calls of contracts. */
import { Interface } from 'ethers'
import { callOf } from '../../domain/actions/action-rules.ts'
import { REMOVE_MODES } from '../../domain/positions/adjustment.ts'
import { isLeverage } from '../../domain/positions/adjustment-attempt.ts'
import { ONE } from '../../domain/units.ts'
import { Forwarder__factory } from '../../typechain-types/factories/Forwarder__factory.ts'
import { IIsolatedTrader__factory } from '../../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'
import type { Calls } from '../ports.ts'

const TRADER = IIsolatedTrader__factory.createInterface()
/** Any function of the contract: names and arguments of actions are those of its ABI (`domain/actions/action-rules.ts`). */
type ActionFunction = 'settleBatch'
const FORWARDER = Forwarder__factory.createInterface()
const TOKEN = new Interface(['function mint(address to, uint256 amount)'])

/** Static: an estimate would cost a round trip per part and can be outdated when it is used. */
export interface GasLimits {
  readonly part: bigint
  readonly order: bigint
  readonly simple: bigint
}

/** Above what the forwarder uses before and after the call. */
const FORWARDING = 200_000
/** The forwarder requires that the whole gas of the request can be forwarded, of which a call gets at most 49/50. */
const forwardingGas = (inner: number): bigint => BigInt(Math.ceil((inner * 50) / 49) + FORWARDING)

export const createCalls = (gas: GasLimits): Calls => ({
  action(spec, action, actionId) {
    const { name, args, writes } = callOf(action, actionId, spec)
    const data = TRADER.encodeFunctionData(name as ActionFunction, args as never) as `0x${string}`
    return { to: spec.trader, data, value: 0n, gas: gas.part + gas.order * BigInt(writes) }
  },
  adjust: (spec, { adjustment, account, nonce, deadline, signature, asOf, report }) => {
    const { price, observedAt, signatures: proof } = report
    const common = { account, nonce, deadline }
    const [name, struct] = isLeverage(adjustment)
      ? ['adjustLeverage' as const, { ...adjustment, ...common, leverage: BigInt(adjustment.leverage) * ONE }]
      : [
          'adjustMargin' as const,
          { ...adjustment, ...common, removeMode: REMOVE_MODES.indexOf(adjustment.removeMode) },
        ]
    const args = [asOf, struct, { price, observedAt, proof }, signature]
    const data = TRADER.encodeFunctionData(name as ActionFunction, args as never) as `0x${string}`
    return { to: spec.trader, data, value: 0n, gas: gas.part }
  },
  heartbeat: (trader) => ({
    to: trader,
    data: TRADER.encodeFunctionData('heartbeat') as `0x${string}`,
    value: 0n,
    gas: gas.simple,
  }),
  submitFinalReport: (trader, { price, observedAt, signatures: proof }) => ({
    to: trader,
    data: TRADER.encodeFunctionData('submitFinalReport', [{ price, observedAt, proof }]) as `0x${string}`,
    value: 0n,
    gas: gas.part,
  }),
  reportInsolvent: (trader, accounts) => ({
    to: trader,
    data: TRADER.encodeFunctionData('reportInsolvent', [[...accounts]]) as `0x${string}`,
    value: 0n,
    gas: gas.part + gas.order * BigInt(accounts.length),
  }),
  claim: (trader, account) => ({
    to: trader,
    data: TRADER.encodeFunctionData('claim', [account]) as `0x${string}`,
    value: 0n,
    gas: gas.part,
  }),
  forward: (forwarder, { owner, target, gas: inner, deadline, data, signature }) => ({
    to: forwarder,
    data: FORWARDER.encodeFunctionData('execute', [
      { from: owner, to: target, value: 0n, gas: inner, deadline, data, signature },
    ]) as `0x${string}`,
    value: 0n,
    gas: forwardingGas(inner),
  }),
  mint: (token, to, amount) => ({
    to: token,
    data: TOKEN.encodeFunctionData('mint', [to, amount]) as `0x${string}`,
    value: 0n,
    gas: gas.simple,
  }),
  transfer: (to, value) => ({ to, data: '0x', value, gas: gas.simple }),
  noop: (self) => ({ to: self, data: '0x', value: 0n, gas: gas.simple }),
})
