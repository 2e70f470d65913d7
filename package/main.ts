/** `npm run build:package`: builds the npm package into `dist/`. */
import { buildPackage } from './build.ts'

await buildPackage('dist')
console.log('built dist/: check it with `npm publish --dry-run ./dist`')
