/** Logs of our contracts to facts. Pure; a log that cannot be read becomes a fact too, because the chain goes on. */
import type { Interface, LogDescription } from 'ethers'
import type { MarketSpec } from '../../domain/market/market.ts'
import { decodeBatchSettled } from '../../domain/settlement/settlement-codec.ts'
import type { Address } from '../../domain/units.ts'
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import type { ChainLog } from '../ports.ts'
import { decodeAdjustment } from './decode-adjust.ts'
import { decodeRisk } from './decode-risk.ts'
import type { ChainFact, Contracts, LedgerMoved } from './facts.ts'

const BANK = MarginBank__factory.createInterface()
const ACCOUNT_MANAGER = AccountManager__factory.createInterface()
const TRADER = IsolatedTrader__factory.createInterface()

export function decodeLog(log: ChainLog, contracts: Contracts): ChainFact {
  const spec = contracts.markets.get(log.address) ?? null
  try {
    if (spec !== null) return decodeTrader(log, spec)
    if (log.address === contracts.bank) return decodeBank(parse(BANK, log))
    if (log.address === contracts.accountManager) return decodeAccountManager(parse(ACCOUNT_MANAGER, log))
    throw new Error(`${log.address} is none of our contracts`)
  } catch (error) {
    return { kind: 'undecodable', spec, problem: (error as Error).message }
  }
}

function parse(contract: Interface, { topics, data }: ChainLog): LogDescription {
  const event = contract.parseLog({ topics, data })
  if (event === null) throw new Error(`an event that the contract does not declare: ${topics[0]}`)
  return event
}

const addressOf = (value: unknown): Address => String(value).toLowerCase() as Address

function decodeBank({ name, args }: LogDescription): ChainFact {
  switch (name) {
    case 'Deposited':
      return moved('deposit', args.account, args.amount, 0n)
    case 'WithdrawalRequested':
      return moved('withdrawal_request', args.account, -BigInt(args.amount), args.amount)
    case 'Withdrawn':
      return moved('withdrawal', args.account, 0n, -BigInt(args.amount))
    case 'FeesCollected':
      return moved('fees_collected', args.treasury, args.amount, 0n)
    case 'MarketAnnounced':
    case 'AnnouncementWithdrawn':
    case 'MarketListed':
    case 'TreasuryChanged':
    case 'Paused':
    case 'Unpaused':
    case 'AuthorityUpdated':
      return { kind: 'ignored', event: name }
    default:
      throw new Error(`no meaning is known of the bank's ${name}`)
  }
}

const moved = (
  cause: LedgerMoved['cause'],
  account: unknown,
  freeDelta: bigint,
  pendingDelta: bigint,
): LedgerMoved => ({ kind: 'ledger_moved', cause, account: addressOf(account), freeDelta, pendingDelta })

function decodeTrader(log: ChainLog, spec: MarketSpec): ChainFact {
  const event = parse(TRADER, log)
  const other = decodeRisk(event, spec) ?? decodeAdjustment(event, spec)
  if (other !== null) return other
  const { name, args } = event
  switch (name) {
    case 'BatchSettled':
      return { kind: 'part_mined', spec, settled: decodeBatchSettled(log.topics, log.data, spec) }
    case 'SaltsCancelled':
      return { kind: 'salts_cancelled', spec, maker: addressOf(args.maker), salts: [...args.salts] }
    case 'SaltsCancelledBelow':
      return { kind: 'salts_cancelled', spec, maker: addressOf(args.maker), salts: { below: args.floor } }
    case 'MarketCreated':
    case 'ParametersChanged':
    case 'ParametersScheduled':
    case 'ScheduledParametersCancelled':
    case 'ModeScheduled':
    case 'ModeRestricted':
    case 'OperatorChanged':
    case 'EIP712DomainChanged':
    case 'AuthorityUpdated':
      return { kind: 'ignored', event: name }
    default:
      throw new Error(`no meaning is known of the market's ${name}`)
  }
}

function decodeAccountManager({ name, args }: LogDescription): ChainFact {
  const whose = () => ({ owner: addressOf(args.owner), key: addressOf(args.key) })
  switch (name) {
    case 'SessionKeyRegistered': {
      const times = { registered_at: Number(args.registeredAt), expires_at: Number(args.expiresAt) }
      const change = { permissions: Number(args.permissions), ...times }
      return { kind: 'session_key_updated', ...whose(), change }
    }
    case 'SessionKeyRevoked':
      return { kind: 'session_key_updated', ...whose(), change: { revoked_at: Number(args.revokedAt) } }
    default:
      throw new Error(`no meaning is known of the account manager's ${name}`)
  }
}
