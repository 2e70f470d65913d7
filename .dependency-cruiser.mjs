/** The arrows between folders, one rule each. `npm run check:arrows` reports what breaks them. */

const PACKAGES = 'node_modules/'
const CHAIN_PACKAGES = '^(node_modules/(ethers|@typechain)/|typechain-types/)'

/** Files that may speak to the chain, decode its logs, or sign. */
const CHAIN_FILES = [
  '^(keeper|indexer|api)/adapters/',
  '^(keeper|indexer|api)/compose\\.ts$',
  '^indexer/ingest/(follow\\.ts$|decode/)',
  '^service/keys/keystore\\.ts$',
  '^simulate/contracts/',
  '^(stack|bench|test|ignition|tasks|ops|typechain-types)/',
  '^hardhat\\.config\\.ts$',
]

/** The folder of a keeper job contains the job, its ports, and the store that implements them on Postgres. */
const KEEPER_JOBS = '^keeper/(auction|marks|settlement|relayer|faucet|switches|actions|heartbeat|prices)/'
const STORES = '^keeper/.*/(void-|requeue-|book-|engine-|bytes-)?store\\.ts$'

const rule = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to })

const rules = [
  rule(
    'domain-imports-nothing',
    'The rules of the exchange know no package, no Node.js and no other folder, so that anyone can replay them.',
    { path: '^domain/' },
    { pathNot: '^domain/' },
  ),
  rule(
    'jobs-know-no-adapters',
    'A job reads, decides and writes through ports; only compose.ts knows what is behind them.',
    { path: KEEPER_JOBS, pathNot: STORES },
    { path: `^(keeper/(adapters/|compose|main|config)|indexer/adapters/)|${STORES}|${PACKAGES}` },
  ),
  rule(
    'jobs-know-only-types-of-the-database',
    'A job names a fence or a journal row by its type; only the store in its folder runs statements.',
    { path: KEEPER_JOBS, pathNot: STORES },
    { path: '^db/', dependencyTypesNot: ['type-only'] },
  ),
  rule(
    'projections-know-no-adapters',
    'A projection turns log rows into row changes, whoever reads the chain.',
    { path: '^indexer/project/' },
    { path: '^indexer/(adapters/|compose|main|config)' },
  ),
  rule(
    'routes-know-no-adapters',
    'A route declares, calls and maps.',
    { path: '^api/.*/route\\.ts$' },
    { path: '^api/(adapters/|compose|main)' },
  ),
  rule(
    'adapters-know-no-callers',
    'An adapter offers a library in the words of a port; it never calls back into jobs, projections or routes.',
    { path: '^(keeper|indexer|api)/adapters/' },
    { path: `${KEEPER_JOBS}|^indexer/project/|^api/.*/route\\.ts$` },
  ),
  rule(
    'adapters-know-no-adapters',
    'Each adapter can be replaced alone.',
    { path: '^(keeper|indexer|api)/adapters/' },
    { path: '^(keeper|indexer|api)/adapters/' },
  ),
  rule(
    'only-main-composes',
    'compose.ts wires a process; main.ts starts it, and tests may.',
    { pathNot: '^(test/|(keeper|indexer|api|signer|backstop|stack)/main\\.ts$)' },
    { path: '^(keeper|indexer|api|signer|backstop|stack)/compose\\.ts$' },
  ),
  rule(
    'ops-commands-are-tools',
    'An operator’s commands use the libraries of the processes; no process and no other tool depends on them.',
    { pathNot: '^(ops|test|cli/repository)/' },
    { path: '^ops/' },
  ),
  rule(
    'nothing-imports-main',
    'main.ts starts a process the moment it is loaded.',
    {},
    { path: '/main\\.ts$', pathNot: PACKAGES },
  ),
  rule(
    'processes-stay-apart',
    'Processes share domain/, db/ and service/, and communicate through the database, its queues and the link to the engine alone.',
    { path: '^(keeper|indexer|api)/' },
    {
      path: '^(keeper|indexer|api|signer|backstop|client|stack|bench)/',
      // The commands that clients send to the engine, and the connection that carries them.
      pathNot: '^($1/|keeper/engine/(link/|(commands|facts)\\.ts$))',
    },
  ),
  rule(
    'signer-stands-alone',
    'A signer has one key and no database: an intruder of the keeper must not find a second way to a key.',
    { path: '^signer/' },
    { path: '^(db|keeper|indexer|api|client|stack|bench|typechain-types)/' },
  ),
  rule(
    'backstop-trades-over-rest',
    'The backstop closes its positions like any trader: it has no database and no access to other processes.',
    { path: '^backstop/' },
    { path: '^(db|keeper|indexer|api|signer|stack|bench|typechain-types)/' },
  ),
  rule(
    'commands-of-traders-act-over-rest',
    "A trader's commands act over REST and the chain: the npm package contains them without the exchange.",
    { path: '^cli/', pathNot: '^cli/repository/' },
    {
      path: '^(db|keeper|indexer|api|signer|backstop|stack|bench|ops|simulate|tasks|typechain-types|cli/repository)/',
    },
  ),
  rule(
    'client-stands-alone',
    'A trader can take client/ and domain/ and nothing else.',
    { path: '^client/' },
    { path: '^(db|service|keeper|indexer|api|stack|bench|typechain-types)/' },
  ),
  rule(
    'page-uses-the-client',
    'The page is a trader like any other: it has client/ and domain/, and nothing of the processes.',
    { path: '^web/' },
    {
      path: '^(db|service|keeper|indexer|api|signer|backstop|stack|bench|ops|account|verify|test|typechain-types)/',
    },
  ),
  rule(
    'only-the-page-knows-the-page',
    'The page is built from its sources; no process imports them.',
    { pathNot: '^(web|test)/' },
    { path: '^web/' },
  ),
  rule(
    'client-carries-only-hashing-and-units',
    'The core of the published package contains client/ and these files of domain/: order terms, order hashing, units. Only client/proof/ recomputes batches with more of domain/. The rule follows imports.',
    { path: '^client/', pathNot: '^client/proof/' },
    {
      path: '^domain/',
      pathNot: '^domain/(orders/order(-hash)?|units|hex|invariant|verdict)\\.ts$',
      reachable: true,
    },
  ),
  rule(
    'shared-layers-know-no-process',
    'db/ and service/ serve every process, so they import none of them.',
    { path: '^(db|service)/' },
    { path: '^(indexer|keeper|api|client|stack|bench|tasks|ignition|ops)/' },
  ),
  rule(
    'service-knows-no-database',
    'service/ holds what a process needs whatever it does: environment, clock, logger, metrics, health.',
    { path: '^service/' },
    { path: '^db/' },
  ),
  rule(
    'chain-only-at-the-edge',
    'ethers and the generated types appear only in chain adapters, decoders, signing and tests.',
    { pathNot: CHAIN_FILES },
    { path: CHAIN_PACKAGES },
  ),
  rule(
    'product-knows-no-tests',
    'What runs in production does not depend on test/.',
    { path: '^(domain|db|service|keeper|indexer|api|signer|backstop|client|stack|web)/' },
    { path: '^(test|bench)/' },
  ),
  rule(
    'product-uses-no-dev-packages',
    'What runs in production is a dependency in package.json.',
    { path: '^(domain|db|service|keeper|indexer|api|signer|backstop|client|stack|web)/' },
    { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
  ),
  rule('nothing-missing', 'Every import leads to a file.', {}, { couldNotResolve: true }),
  rule(
    'no-cycles',
    'Two files that need each other are one concept or need a third.',
    {},
    { circular: true },
  ),
  rule(
    'no-orphans',
    'A file that nothing imports is an entry point or is deleted.',
    {
      orphan: true,
      pathNot:
        '(/main\\.ts|^cli/repository/table\\.ts|^client/signers/default-signer\\.browser\\.ts|^stack/parent-watch\\.ts|^web/trade/canvas-size\\.ts|' +
        '\\.test\\.ts|^(bench|ignition)/.*|^typechain-types/.*|^test/run\\.ts|^test/(fixed-seed|ends)\\.ts|\\.config\\.ts)$',
    },
    {},
  ),
]

export default {
  forbidden: rules,
  options: {
    doNotFollow: { path: ['node_modules', 'typechain-types'] },
    exclude: { path: '^(artifacts|cache|web/dist[^/]*|dist|package/examples)/' },
    tsConfig: { fileName: 'tsconfig.json' },
    // Type-only imports are arrows too.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
}
