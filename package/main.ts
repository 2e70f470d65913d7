/** `npm run build:package`: builds the npm package into `dist/`. */
import { argumentsOf } from '../service/command-line.ts'
import { buildPackage } from './build.ts'

argumentsOf({ command: 'npm run build:package', flags: {} })
await buildPackage('dist')
console.log('built dist/: check it with `npm publish --dry-run ./dist`')
