/** The constructor arguments that each contract must have been created with. */
import { gridOf } from '../stack/deploy.ts'
import { contractOf } from './deployment.ts'
import { collateralOf, type Subject } from './immutables.ts'

/** Matches every argument: the exchange can replace the value later, so the check compares the present value instead. */
export const ANY = Symbol('any argument')

const at = ({ deployment }: Subject, name: string): string => contractOf(deployment, name)

const ARGUMENTS: Readonly<Record<string, (subject: Subject) => readonly unknown[]>> = {
  // The deployer has every role until the hand-over, and no other account gets one without an event.
  ExchangeAccess: ({ creation, exchange }) => [
    typeof creation === 'string' ? ANY : creation.sender,
    exchange.roleDelay,
  ],
  AccountManager: (subject) => [at(subject, 'Forwarder')],
  SignedPriceOracle: (subject) => [at(subject, 'ExchangeAccess'), subject.exchange.oracleNotice],
  // The treasury.
  MarginBank: (subject) => [
    collateralOf(subject),
    at(subject, 'ExchangeAccess'),
    ANY,
    subject.exchange.listingDelay,
  ],
  Backstop: (subject) => [
    at(subject, 'ExchangeAccess'),
    at(subject, 'MarginBank'),
    at(subject, 'AccountManager'),
  ],
  // The parameters; the grid is unknown without a description.
  IsolatedTrader: (subject) => [
    subject.file === undefined ? ANY : gridOf(subject.file.spec),
    ANY,
    at(subject, 'MarginBank'),
    at(subject, 'AccountManager'),
    at(subject, 'SignedPriceOracle'),
    at(subject, 'Forwarder'),
    at(subject, 'ExchangeAccess'),
    at(subject, 'MarketExtension'),
  ],
}

export const argumentsOf = (subject: Subject): readonly unknown[] => ARGUMENTS[subject.name]?.(subject) ?? []
