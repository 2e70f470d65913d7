/** A transaction that needs a role of the exchange: printed, and with `--send` sent or scheduled. */
import { FUNCTIONS, type Granted, ROLES } from '../stack/access.ts'
import { reasonOf } from '../tasks/chain.ts'
import { duration, print, timeOfMillis, timeOfSeconds } from '../tasks/print.ts'
import { callRestricted } from '../tasks/restricted.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import type { IsolatedTraderInterface } from '../typechain-types/IsolatedTrader.ts'
import type { Connection } from './connect.ts'
import { OpsError } from './error.ts'

const MARKET = IsolatedTrader__factory.createInterface()
const ORACLE = SignedPriceOracle__factory.createInterface()

type ChangeFunction = Extract<
  Parameters<IsolatedTraderInterface['getFunction']>[0],
  'scheduleParameters' | 'cancelScheduledParameters' | 'scheduleMode' | 'restrictMode'
>

/** Functions of the oracle that an operator calls. */
type OracleFunction = 'setFeed' | 'cancelFeed'

export interface RestrictedTransaction {
  readonly to: string
  readonly name: ChangeFunction | OracleFunction
  readonly args: readonly unknown[]
  /** In readable form, by the name of the argument. */
  readonly shown: Readonly<Record<string, unknown>>
  /** When it takes effect, in words. */
  readonly effect: string
}

const isOfOracle = (name: string): name is OracleFunction => name === 'setFeed' || name === 'cancelFeed'

const roleOf = (name: string): Granted => {
  const functions = isOfOracle(name) ? FUNCTIONS.SignedPriceOracle : FUNCTIONS.IsolatedTrader
  const roles = Object.entries(functions) as [Granted, readonly string[]][]
  const found = roles.find(([, functions]) => functions.includes(name))
  if (found === undefined) throw new Error(`${name} is assigned to no role`)
  return found[0]
}

/** Prints the transaction; with `isSent` also sends it, or schedules it if the caller's role has a delay. */
export async function perform(
  { provider, signer }: Connection,
  { to, name, args, shown, effect }: RestrictedTransaction,
  isSent: boolean,
): Promise<void> {
  const [data, signature] = isOfOracle(name)
    ? [
        ORACLE.encodeFunctionData(name as 'cancelFeed', args as never),
        ORACLE.getFunction(name).format('sighash'),
      ]
    : [
        MARKET.encodeFunctionData(name as 'restrictMode', args as never),
        MARKET.getFunction(name).format('sighash'),
      ]
  const role = roleOf(name)
  const authority = await IsolatedTrader__factory.connect(to, { provider }).authority()
  const access = ExchangeAccess__factory.connect(authority, signer ?? { provider })
  print(isSent ? 'transaction' : 'transaction that --send would send', {
    to,
    function: signature,
    ...shown,
    calldata: data,
    from: signer === null ? `a holder of the role ${role} (no key is set)` : signer.address,
    role: `${role} (${ROLES[role]}) of ExchangeAccess ${authority}${await rightOf(access, signer?.address, role)}`,
    effect,
  })
  if (signer !== null) await rehearse(access, signer, to, data)
  if (!isSent) return
  if (signer === null)
    throw new OpsError('--send needs a key: set OPS_KEY or OPS_KEYSTORE, or pass --stack of a running stack')
  try {
    const result = await callRestricted(access, signer, { target: to, data })
    if (result.kind === 'forbidden')
      throw new OpsError(`${signer.address} may not call ${name}: it does not have the role ${role}`)
    console.log(
      result.kind === 'done'
        ? 'mined'
        : `scheduled: run the same command again from ${timeOfSeconds(result.at)} on to execute it`,
    )
  } catch (error) {
    throw error instanceof OpsError ? error : new OpsError(`the transaction was rejected: ${reasonOf(error)}`)
  }
}

type OpenFunction = Extract<
  Parameters<IsolatedTraderInterface['getFunction']>[0],
  'requestFreeze' | 'freeze' | 'reportInsolvent' | 'claim'
>

/** A call that any account may make: printed and evaluated on the latest block, and with `isSent` sent. */
export async function performOpen(
  { provider, signer }: Connection,
  { to, name, args, shown, effect }: Omit<RestrictedTransaction, 'name'> & { readonly name: OpenFunction },
  isSent: boolean,
): Promise<void> {
  const data = MARKET.encodeFunctionData(name as 'claim', args as never)
  print(isSent ? 'transaction' : 'transaction that --send would send', {
    to,
    function: MARKET.getFunction(name as 'claim')?.format('sighash'),
    ...shown,
    calldata: data,
    from: signer === null ? 'any account (no key is set)' : `${signer.address}; any account may call it`,
    effect,
  })
  try {
    await provider.call({ to, data, from: signer?.address ?? null })
    if (!isSent) return
    if (signer === null)
      throw new OpsError(
        '--send needs a key: set OPS_KEY or OPS_KEYSTORE, or pass --stack of a running stack',
      )
    await (await signer.sendTransaction({ to, data })).wait()
    console.log('mined')
  } catch (error) {
    if (error instanceof OpsError) throw error
    const reason = withTimes(reasonOf(error))
    throw new OpsError(`the transaction ${isSent ? 'was' : 'would be'} rejected: ${reason}`)
  }
}

/** Times in the arguments of an error are milliseconds. */
const withTimes = (reason: string): string =>
  reason.replace(/\b\d{13}\b/g, (millis) => `${millis} (${timeOfMillis(Number(millis))})`)

/** A call that takes effect at once is evaluated on the latest block; one of a role with a delay cannot be before its time. */
async function rehearse(
  access: ReturnType<typeof ExchangeAccess__factory.connect>,
  signer: NonNullable<Connection['signer']>,
  to: string,
  data: string,
): Promise<void> {
  const [isImmediate] = await access.canCall(signer.address, to, data.slice(0, 10))
  if (!isImmediate) return
  try {
    await signer.call({ to, data })
  } catch (error) {
    throw new OpsError(`the transaction would be rejected: ${reasonOf(error)}`)
  }
}

async function rightOf(
  access: ReturnType<typeof ExchangeAccess__factory.connect>,
  address: string | undefined,
  role: Granted,
): Promise<string> {
  if (address === undefined) return ''
  const [isMember, delay] = await access.hasRole(ROLES[role], address)
  if (!isMember) return '; this key does not have it'
  return delay === 0n
    ? '; this key acts at once'
    : `; this key acts ${duration(Number(delay))} after scheduling`
}
