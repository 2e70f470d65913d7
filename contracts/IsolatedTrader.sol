// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ForwardedSender} from "./base/ForwardedSender.sol";
import {MarketDelegator} from "./base/MarketDelegator.sol";
import {Restricted} from "./base/Restricted.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol";
import {IAdjustments} from "./interfaces/IAdjustments.sol";
import {IIsolatedTrader} from "./interfaces/IIsolatedTrader.sol";
import {IMarginBank} from "./interfaces/IMarginBank.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ActionKind, ActionLib} from "./libraries/ActionLib.sol";
import {AdjustLib} from "./libraries/AdjustLib.sol";
import {BandLib} from "./libraries/BandLib.sol";
import {CancelLib} from "./libraries/CancelLib.sol";
import {EndingLib} from "./libraries/EndingLib.sol";
import {FeeLib} from "./libraries/FeeLib.sol";
import {LedgerCall} from "./libraries/LedgerCall.sol";
import {ListingLib} from "./libraries/ListingLib.sol";
import {MarginLib} from "./libraries/MarginLib.sol";
import {OrderLib} from "./libraries/OrderLib.sol";
import {PauseLib} from "./libraries/PauseLib.sol";
import {PositionLib} from "./libraries/PositionLib.sol";
import {ReportLib} from "./libraries/ReportLib.sol";
import {SaltLib} from "./libraries/SaltLib.sol";
import {SettlementCodec} from "./libraries/SettlementCodec.sol";
import {AdjustLeverage, AdjustMargin} from "./types/Adjustment.sol";
import {MarketGrid, MarketKind, MarketMode, Parameters} from "./types/Market.sol";
import {MarketContext} from "./types/MarketContext.sol";
import {Position} from "./types/Position.sol";
import {RecordBody, RecordHead} from "./types/OrderRecord.sol";
import {Report} from "./types/Report.sol";
import {PartHeader, PartTerms} from "./types/Settlement.sol";
import {DOMAIN_NAME, DOMAIN_VERSION} from "./types/SigningDomain.sol";
import {Clock, Reference, TraderState, Word} from "./types/TraderState.sol";

/// @title One market: settles batches of signed orders into isolated positions
contract IsolatedTrader is MarketDelegator, ForwardedSender, EIP712, ReentrancyGuardTransient {
    using SaltLib for TraderState;

    // ------------------------------------------------------------------ types

    /// @dev The memory that all records of a part share.
    struct SettlementContext {
        PartTerms terms;
        /// Position of the current run's account.
        Position position;
        uint256 fees;
        /// Steps, 64 bits each, from the low bit: bought, sold, taker, forced.
        uint256 volumes;
        /// Address of the next log record.
        uint256 logEnd;
        /// Start of the calldata for the bank, and address of its next word.
        uint256 ledger;
        uint256 ledgerEnd;
    }

    // ------------------------------------------------------------------ constants, immutables

    MarketKind private immutable _KIND;
    uint256 private immutable _TICK;
    uint256 private immutable _STEP;
    bytes32 private immutable _FEED_ID;
    bytes32 private immutable _SESSION_FEED_ID;
    /// @dev The listed expiry; the largest number for a perpetual. Before it, batches need not read the expiry in force.
    uint256 private immutable _EXPIRES_AT;
    IMarginBank private immutable _BANK;
    IAccountManager private immutable _ACCOUNT_MANAGER;
    IPriceOracle private immutable _ORACLE;

    // ------------------------------------------------------------------ constructor

    constructor(
        MarketGrid memory marketGrid,
        Parameters memory firstParameters,
        address marginBank,
        address keys,
        address priceOracle,
        address forwarder,
        address access,
        address code
    ) EIP712(DOMAIN_NAME, DOMAIN_VERSION) Restricted(access) ForwardedSender(forwarder) MarketDelegator(code) {
        if (marginBank.code.length == 0 || keys == address(0) || priceOracle == address(0)) revert AddressZero();
        ListingLib.requireGrid(marketGrid);
        ListingLib.requireParameters(firstParameters, marketGrid.kind);
        _KIND = marketGrid.kind;
        _TICK = marketGrid.tick;
        _STEP = marketGrid.step;
        _FEED_ID = marketGrid.feedId;
        _SESSION_FEED_ID = marketGrid.sessionFeedId;
        _EXPIRES_AT = marketGrid.expiresAt == 0 ? type(uint256).max : marketGrid.expiresAt;
        _BANK = IMarginBank(marginBank);
        _ACCOUNT_MANAGER = IAccountManager(keys);
        _ORACLE = IPriceOracle(priceOracle);
        _state.parameters = firstParameters;
        EndingLib.initialize(_state, marketGrid);
        emit MarketCreated(marketGrid, marginBank, keys, priceOracle);
        emit ParametersChanged(0, firstParameters);
    }

    // ------------------------------------------------------------------ settlement

    /// @inheritdoc IIsolatedTrader
    function settleBatch(bytes calldata part) external onlyOperator nonReentrant {
        PartHeader memory header = SettlementCodec.readHeader(part);
        SettlementContext memory settlement;
        _beginPart(part, header, settlement.terms);
        bytes memory log = _settleOrders(part, header, settlement);
        _requireBalanced(settlement.volumes, settlement.terms.forcedOnly);
        LedgerCall.send(settlement.ledger, settlement.ledgerEnd, _BANK, header.asOf, settlement.fees);
        emit BatchSettled(header.actionId, header.batchId, log);
        ActionLib.requireTimely(header.asOf);
    }

    /// @dev Settles the records. Writes the balance deltas for the bank into `settlement` and returns the log.
    function _settleOrders(bytes calldata part, PartHeader memory header, SettlementContext memory settlement)
        private
        returns (bytes memory log)
    {
        uint256 next;
        assembly ("memory-safe") {
            next := add(part.offset, 64)
        }
        uint256 left = header.orders;
        (settlement.ledger, settlement.ledgerEnd) = LedgerCall.start(left);
        (log, settlement.logEnd) = SettlementCodec.startLog(part, left, settlement.terms.fundingIndex);
        while (left != 0) (next, left) = _settleRun(settlement, next, left);
        SettlementCodec.requireEnd(part, header.proofLength, next);
        SettlementCodec.finishLog(log, settlement.logEnd);
    }

    /// @dev Settles one run: adjacent records of one account, at most `left`. The position is read once before the run, and
    /// checked and written once after it. A forced record starts its own run, so that the liquidation check sees the position
    /// before the record.
    /// @return Calldata position of the next run.
    /// @return Records left behind the run.
    function _settleRun(SettlementContext memory settlement, uint256 next, uint256 left)
        private
        returns (uint256, uint256)
    {
        PartTerms memory terms = settlement.terms;
        Position memory held = settlement.position;
        uint256 pointer = next;
        RecordHead head;
        RecordBody body;
        (head, body, next) = OrderLib.read(pointer);
        address account = head.maker();
        Word storage place = _state.positions[account];
        PositionLib.unpack(place.bits, terms.fundingIndex, held);
        if (body.isForced() && MarginLib.requireLiquidatable(held, terms, account) > 0) {
            PauseLib.requireGraceOver(_BANK, terms.asOf, account);
        }
        int256 change;
        bool opened;
        unchecked { // U3
            while (true) {
                (bool opens, int256 freeDelta) = _settleOrder(settlement, head, body, pointer);
                if (opens) opened = true;
                change += freeDelta;
                if (--left == 0 || !OrderLib.continuesRun(next, account)) break;
                pointer = next;
                (head, body, next) = OrderLib.read(pointer);
            }
        }
        uint256 word = PositionLib.pack(held, terms.fundingIndex, account);
        if (opened) MarginLib.requireInitial(held, terms, account);
        place.bits = word;
        if (change != int96(change)) revert PositionOutOfRange(account);
        settlement.ledgerEnd = LedgerCall.push(settlement.ledgerEnd, account, change);
        return (next, left);
    }

    /// @dev Settles one record: checks, signature, fill state, position, log.
    /// @return opened Whether any share of the fill opened.
    /// @return freeDelta Change of the account's free balance.
    function _settleOrder(SettlementContext memory settlement, RecordHead head, RecordBody body, uint256 pointer)
        private
        returns (bool opened, int256 freeDelta)
    {
        PartTerms memory terms = settlement.terms;
        bool dead;
        if (body.isForced()) {
            OrderLib.requireForced(head, body);
        } else {
            OrderLib.requireValid(head, body, terms);
            _requireSigner(head, body, pointer, terms);
            if (settlement.position.hasFloors) _state.requireAboveFloor(head.maker(), body.salt(), terms.asOf);
            dead = _state.consume(head, body, terms.batchId, terms.asOf);
        }
        uint256 fee;
        bool capped;
        (opened, freeDelta, fee, capped) = PositionLib.applyFill(settlement.position, head, body, terms);
        if (freeDelta != int96(freeDelta)) revert AmountOutOfRange(head.maker(), body.salt(), freeDelta);
        settlement.logEnd = SettlementCodec.writeRecord(settlement.logEnd, head, body, freeDelta, fee, capped, dead);
        _count(settlement, head.fill(), body, fee);
    }

    function _count(SettlementContext memory settlement, uint256 fill, RecordBody body, uint256 fee) private pure {
        unchecked { // U4
            settlement.fees += fee;
            uint256 volumes = (body.isBuy() ? fill : fill << 64) | (body.taker() << 128);
            if (body.isForced()) volumes |= fill << 192;
            settlement.volumes += volumes;
        }
    }

    function _requireSigner(RecordHead head, RecordBody body, uint256 pointer, PartTerms memory terms) private view {
        (bytes32 r, bytes32 s) = OrderLib.readSignature(pointer);
        address signer = OrderLib.recover(OrderLib.digest(head, body, terms), body.parity(), r, s);
        OrderLib.requireSigner(_ACCOUNT_MANAGER, head.maker(), body.salt(), signer, terms.asOf);
    }

    /// @dev Reverts unless steps bought = steps sold = taker steps. If only liquidations may trade, every matched step must be
    /// forced on at least one side.
    function _requireBalanced(uint256 volumes, bool forcedOnly) private pure {
        uint256 bought = uint64(volumes);
        uint256 sold = uint64(volumes >> 64);
        uint256 taker = uint64(volumes >> 128);
        if (bought != sold) revert Unbalanced(bought, sold);
        if (taker != bought) revert TakerMismatch(bought, taker);
        if (forcedOnly && volumes >> 192 < bought) revert MarketNotOpen(MarketMode.CancelOnly);
    }

    // ------------------------------------------------------------------ actions

    /// @dev Begins the action, checks order of the part, report, price and fee rates, and computes the terms of all its records.
    function _beginPart(bytes calldata part, PartHeader memory header, PartTerms memory terms) private {
        ActionLib.Action memory action = ActionLib.Action(_state.clock, _state.reference_, _state.parameters);
        ActionLib.begin(action, _state, _EXPIRES_AT, header.actionId, header.asOf, ActionKind.Batch);
        Parameters memory current = action.parameters;
        Reference memory last = action.reference_;
        bool binary = _KIND == MarketKind.BinaryFuture;
        if (_placePart(action.clock, header)) {
            BandLib.checkReport(header.asOf, header.oraclePrice, header.observedAt, last, current, _TICK, binary);
            ReportLib.requireProven(
                _ORACLE, _FEED_ID, last, header.oraclePrice, header.observedAt, SettlementCodec.proofOf(part, header)
            );
            // The header has the same field widths.
            last.oraclePrice = uint96(header.oraclePrice);
            last.observedAt = uint48(header.observedAt);
        } else if (header.oraclePrice != last.oraclePrice || header.observedAt != last.observedAt) {
            revert BatchTermsChanged(header.batchId);
        }
        (uint256 lowest, uint256 highest) = BandLib.band(header.oraclePrice, _TICK, current, binary);
        if (header.price < lowest || header.price > highest) revert PriceOffBand(lowest, highest, header.price);
        if (header.makerFee > current.makerFee) revert FeeAboveSchedule(current.makerFee, header.makerFee);
        if (header.takerFee > current.takerFee) revert FeeAboveSchedule(current.takerFee, header.takerFee);
        ActionLib.save(_state, action);
        _fixTerms(terms, header, current, last.fundingIndex, binary);
    }

    function _fixTerms(
        PartTerms memory terms,
        PartHeader memory header,
        Parameters memory current,
        int256 fundingIndex,
        bool binary
    ) private view {
        terms.domainSeparator = _domainSeparatorV4();
        terms.asOf = header.asOf;
        terms.batchId = header.batchId;
        terms.price = header.price;
        terms.tick = _TICK;
        terms.step = _STEP;
        terms.maxLeverage = current.maxLeverage;
        terms.imr = current.imr;
        terms.forcedOnly = current.mode != MarketMode.Open;
        terms.fundingIndex = fundingIndex;
        terms.binary = binary;
        unchecked { // U5
            terms.liquidationRatio = current.mmr + MarginLib.LIQUIDATION_BUFFER;
            // The listing rules ensure a whole number.
            terms.tickStepValue = (_TICK * _STEP) / 1e18;
            terms.stepNotional = header.price * terms.tickStepValue;
            terms.oracleStepX = header.oraclePrice * _STEP;
            uint256 price = header.price * _TICK;
            terms.makerFeePerStep = FeeLib.perStep(binary, price, _STEP, terms.stepNotional, header.makerFee);
            terms.takerFeePerStep = FeeLib.perStep(binary, price, _STEP, terms.stepNotional, header.takerFee);
        }
    }

    /// @dev Opens a batch or continues the current one.
    /// @return first Whether the part is the first of its batch.
    function _placePart(Clock memory clock_, PartHeader memory header) private pure returns (bool first) {
        // Batch numbers are at most `asOf`, so that no operator can exhaust the number space.
        if (header.batchId < clock_.batchId || header.batchId == 0 || header.batchId > header.asOf) {
            revert BatchOutOfOrder(clock_.batchId, header.batchId);
        }
        first = header.batchId > clock_.batchId;
        uint256 expected = first ? 1 : uint256(clock_.part) + 1;
        if (header.part != expected || header.part > header.parts) revert PartOutOfOrder(expected, header.part);
        // The header has the same field widths.
        clock_.part = uint8(header.part);
        if (!first) {
            if (!_isSameBatch(clock_, header)) revert BatchTermsChanged(header.batchId);
            return false;
        }
        clock_.batchId = uint48(header.batchId);
        clock_.parts = uint8(header.parts);
        clock_.price = uint40(header.price);
        clock_.makerFee = uint24(header.makerFee);
        clock_.takerFee = uint24(header.takerFee);
    }

    function _isSameBatch(Clock memory clock_, PartHeader memory header) private pure returns (bool) {
        return header.parts == clock_.parts && header.price == clock_.price && header.makerFee == clock_.makerFee
            && header.takerFee == clock_.takerFee;
    }

    // ------------------------------------------------------------------ adjustments

    /// @inheritdoc IAdjustments
    function adjustMargin(uint256 asOf, AdjustMargin calldata adjustment, Report calldata report, bytes calldata signature)
        external
        onlyOperator
        nonReentrant
    {
        AdjustLib.adjustMargin(_state, _context(), asOf, adjustment, report, signature);
    }

    /// @inheritdoc IAdjustments
    function adjustLeverage(
        uint256 asOf,
        AdjustLeverage calldata adjustment,
        Report calldata report,
        bytes calldata signature
    ) external onlyOperator nonReentrant {
        AdjustLib.adjustLeverage(_state, _context(), asOf, adjustment, report, signature);
    }

    /// @inheritdoc IAdjustments
    function invalidateMarginNonces(uint256 newMinimum) external {
        AdjustLib.invalidateNonces(_state, _forwardedSender(), newMinimum);
    }

    // ------------------------------------------------------------------ cancels

    /// @inheritdoc IIsolatedTrader
    function cancelSalts(uint64[] calldata salts) external {
        CancelLib.cancelSalts(_state, _forwardedSender(), salts);
    }

    /// @inheritdoc IIsolatedTrader
    function cancelSaltsBelow(uint256 floor) external {
        CancelLib.cancelSaltsBelow(_state, _forwardedSender(), floor);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IIsolatedTrader
    function extension() external view returns (address) {
        return _EXTENSION;
    }

    /// @inheritdoc EIP712
    function eip712Domain()
        public
        view
        override
        returns (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        (fields, name, version, chainId, verifyingContract, salt, extensions);
        _staticDelegate();
    }

    // ------------------------------------------------------------------ internals

    /// @inheritdoc MarketDelegator
    function _context() internal view override returns (MarketContext memory) {
        return MarketContext({
            kind: _KIND,
            tick: _TICK,
            step: _STEP,
            feedId: _FEED_ID,
            sessionFeedId: _SESSION_FEED_ID,
            expiresAt: _EXPIRES_AT,
            bank: _BANK,
            accountManager: _ACCOUNT_MANAGER,
            oracle: _ORACLE,
            domainSeparator: _domainSeparatorV4()
        });
    }
}
