/** Commands that run or administer an exchange. The npm package does not contain this folder. */
import {
  decimal,
  oneOf,
  positiveNumber,
  required,
  text,
  toggle,
  wholeNumber,
  withDefault,
} from '../../service/command-line.ts'
import { SCENARIOS } from '../../simulate/scenarios.ts'
import { CLUSTER_FLAGS, DIR_FLAG } from '../../stack/cluster/options.ts'
import { START_FLAGS } from '../../stack/options.ts'
import { type Command, command } from '../command.ts'

const scenarioNames = oneOf([...SCENARIOS, 'recorded', 'all'], 'the scenario')

const STACK: readonly Command[] = [
  command('start', {
    help: 'Run a complete exchange on this machine until Ctrl-C',
    flags: START_FLAGS,
    kind: 'tool',
    example: 'npm start -- --fresh',
    load: async () => (await import('./start.ts')).start,
  }),
  command('cluster', {
    help: "Run an exchange on Debian's servers until Ctrl-C: Postgres under Patroni, Redis under Sentinel, two of each process",
    flags: CLUSTER_FLAGS,
    kind: 'tool',
    example: 'npm run cb -- cluster --fresh',
    load: async () => (await import('./cluster.ts')).cluster,
  }),
  command('cluster status', {
    help: 'Print address, state and role of every service of a running cluster',
    flags: { dir: DIR_FLAG },
    kind: 'tool',
    example: 'npm run cb -- cluster status --json',
    load: async () => (await import('./cluster.ts')).status,
  }),
  command('feed', {
    help: 'Replay recorded prices into a running stack, through the recorded source of its price publisher',
    flags: {
      market: required(text('<symbol>', 'market that gets the prices, such as BTC-PERP')),
      prices: required(
        text(
          '<file>',
          'recorded prices, .csv or .csv.gz, with the columns time_ms and price (bars also open, reports also recv_ms)',
        ),
      ),
      speed: withDefault(positiveNumber('speed relative to the recording'), 1),
      minutes: positiveNumber('replay only the first x recorded minutes'),
      absolute: toggle(
        'publish prices as recorded; without it the first one maps to the present oracle price, except in a binary market',
      ),
    },
    kind: 'tool',
    example: 'npm run cb -- feed --market BTC-PERP --prices prices.csv.gz --speed 60',
    load: async () => (await import('./feed.ts')).feed,
  }),
  command('replay', {
    help: 'Send recorded order flow to a running stack through its REST interface',
    flags: {
      orders: required(
        text(
          '<file>',
          'recorded order flow, .csv or .csv.gz: LOBSTER messages or a per-order log, recognized by the header',
        ),
      ),
      market: required(text('<symbol>', 'market that receives the orders, such as AAPL-PERP')),
      speed: withDefault(positiveNumber('speed relative to the recording'), 1),
      limit: wholeNumber('send only the first n lines', { least: 1 }),
      minutes: positiveNumber('send only the first x recorded minutes'),
      accounts: withDefault(
        wholeNumber('number of generated accounts that send the orders', { least: 1 }),
        20,
      ),
      feed: toggle(
        'copies of book, fills and accounts follow the live feed and are compared with REST at the end',
      ),
      verify: toggle('the proof of every batch is verified against the chain at the end'),
    },
    kind: 'tool',
    example: 'npm run cb -- replay --orders flow.csv.gz --market BTC-PERP --speed 20 --minutes 30',
    load: async () => (await import('./replay.ts')).replay,
  }),
  command('simulate', {
    help: 'Run scenarios of falling, jumping and missing prices through the rules, and check every law at every step',
    flags: {
      scenario: scenarioNames,
      scenarios: scenarioNames,
      seed: withDefault(wholeNumber('the first seed'), 1),
      count: withDefault(wholeNumber('number of scenarios, each with the next seed', { least: 1 }), 1),
      accounts: wholeNumber('traders; 2,000 for a single scenario, otherwise 8 to 48 by the seed, or 200', {
        least: 1,
      }),
      contracts: toggle('repeat every scenario on the contracts, on an in-process chain; 10 traders each'),
      recordings: text('<files>', 'recordings of prices, separated by commas; each is a scenario of its own'),
    },
    kind: 'tool',
    example: 'npm run cb -- simulate --scenario crash --seed 7',
    load: async () => (await import('./simulate.ts')).simulate,
  }),
]

const DATABASE: readonly Command[] = [
  command('db migrate', {
    help: 'Migrate the database at DATABASE_URL, a connection of its owner, to the newest schema',
    flags: { contract: toggle('also apply steps that end the use of the database by the earlier version') },
    kind: 'tool',
    example: 'DATABASE_URL=postgres://owner:…@host/clearbatch npm run cb -- db migrate',
    load: async () => (await import('./migrate.ts')).migrate,
  }),
  command('db rebuild', {
    help: 'Rebuild the read model from the first row of the journal, also while the indexer runs',
    flags: { projection: text('<name>', 'rebuild only the tables of this projection') },
    kind: 'tool',
    example: 'npm run cb -- db rebuild --projection orders',
    load: async () => (await import('./rebuild.ts')).rebuild,
  }),
  command('db set-protection', {
    help: "Announce the width of a market's price protection for a day ahead",
    flags: {
      market: required(text('<symbol>', 'symbol of the market')),
      protection: required(
        decimal('the new width, such as 0.01: a share of the price; in a binary future a distance'),
      ),
    },
    kind: 'tool',
    example: 'npm run cb -- db set-protection --market BTC-PERP --protection 0.02',
    load: async () => (await import('./set-protection.ts')).setProtection,
  }),
]

/** The operator's commands load the database and the chain, so they come last. */
export const repositoryCommands = async (): Promise<readonly Command[]> => [
  ...STACK,
  ...DATABASE,
  ...(await import('./ops.ts')).OPS_COMMANDS,
]
