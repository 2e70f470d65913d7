// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ForwardedSender} from "./base/ForwardedSender.sol";
import {MarketDoors} from "./base/MarketDoors.sol";
import {MarketState} from "./base/MarketState.sol";
import {Restricted} from "./base/Restricted.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol";
import {IIsolatedTrader} from "./interfaces/IIsolatedTrader.sol";
import {IMarginBank} from "./interfaces/IMarginBank.sol";
import {IMarketChanges} from "./interfaces/IMarketChanges.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ActionKind, ActionLib} from "./libraries/ActionLib.sol";
import {BandLib} from "./libraries/BandLib.sol";
import {ChangeLib} from "./libraries/ChangeLib.sol";
import {FeeLib} from "./libraries/FeeLib.sol";
import {ListingLib} from "./libraries/ListingLib.sol";
import {MarginLib} from "./libraries/MarginLib.sol";
import {OrderDeskLib} from "./libraries/OrderDeskLib.sol";
import {OrderLib} from "./libraries/OrderLib.sol";
import {PositionLib} from "./libraries/PositionLib.sol";
import {SaltLib} from "./libraries/SaltLib.sol";
import {SettlementCodec} from "./libraries/SettlementCodec.sol";
import {MarketGrid, MarketKind, MarketMode, OperatorStatus, Parameters} from "./types/Market.sol";
import {MarketContext} from "./types/MarketContext.sol";
import {Order, SaltState} from "./types/Order.sol";
import {Position} from "./types/Position.sol";
import {FillOutcome, OrderFill, PartHeader, PartTerms, PartTotals} from "./types/Settlement.sol";
import {CancelFloor, Clock, PendingChange, Reference, TraderState, Word} from "./types/TraderState.sol";

/// @title One market: positions, signed orders, batches
contract IsolatedTrader is MarketDoors, IIsolatedTrader, EIP712, ReentrancyGuardTransient {
    using SaltLib for TraderState;

    // ------------------------------------------------------------------ types

    /// @dev What a part is settled with, in memory once and reused from record to record.
    struct Desk {
        PartTerms terms;
        PartTotals totals;
        /// The record at hand, and what it did.
        OrderFill order;
        FillOutcome outcome;
        /// The account at hand.
        Position position;
        /// Next record in calldata, and where the records end.
        uint256 next;
        uint256 end;
        /// Where the next log record goes.
        uint256 logEnd;
    }

    // ------------------------------------------------------------------ constants, immutables

    uint256 private immutable _MARKET_ID;
    MarketKind private immutable _KIND;
    uint256 private immutable _TICK;
    uint256 private immutable _STEP;
    bytes32 private immutable _FEED_ID;
    bytes32 private immutable _SESSION_FEED_ID;
    uint96 private immutable _FINAL_LOW;
    uint96 private immutable _FINAL_HIGH;
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
    ) EIP712("IsolatedTrader", "2.0") Restricted(access) ForwardedSender(forwarder) MarketDoors(code) {
        if (marginBank == address(0) || keys == address(0) || priceOracle == address(0)) revert AddressZero();
        ListingLib.requireGrid(marketGrid);
        ListingLib.requireParameters(firstParameters, marketGrid.kind);
        _MARKET_ID = marketGrid.marketId;
        _KIND = marketGrid.kind;
        _TICK = marketGrid.tick;
        _STEP = marketGrid.step;
        _FEED_ID = marketGrid.feedId;
        _SESSION_FEED_ID = marketGrid.sessionFeedId;
        _FINAL_LOW = marketGrid.finalLow;
        _FINAL_HIGH = marketGrid.finalHigh;
        _BANK = IMarginBank(marginBank);
        _ACCOUNT_MANAGER = IAccountManager(keys);
        _ORACLE = IPriceOracle(priceOracle);
        _state.parameters = firstParameters;
        emit MarketCreated(marketGrid, marginBank, keys, priceOracle);
        emit ParametersChanged(0, firstParameters);
    }

    // ------------------------------------------------------------------ settlement

    /// @inheritdoc IIsolatedTrader
    function settleBatch(bytes calldata part) external onlyOperator nonReentrant {
        PartHeader memory header = SettlementCodec.readHeader(part);
        Desk memory desk;
        desk.terms = _beginPart(part, header);
        (bytes32[] memory deltas, bytes memory log) = _settleOrders(part, header.orders, desk);
        PartTotals memory totals = desk.totals;
        if (totals.bought != totals.sold) revert Unbalanced(totals.bought, totals.sold);
        if (totals.taker != totals.bought) revert TakerMismatch(totals.bought, totals.taker);
        _BANK.settle(header.asOf, totals.fees, deltas);
        emit BatchSettled(header.actionId, header.batchId, log);
        ActionLib.requireTimely(header.asOf);
    }

    /// @dev Settles the records and returns what the bank and the log are told.
    function _settleOrders(bytes calldata part, uint256 orders, Desk memory desk)
        private
        returns (bytes32[] memory deltas, bytes memory log)
    {
        uint256 next;
        assembly ("memory-safe") {
            next := add(part.offset, 64)
        }
        desk.next = next;
        deltas = new bytes32[](orders);
        (log, desk.logEnd) = SettlementCodec.startLog(part, orders, desk.terms.fundingIndex);
        OrderLib.read(next, desk.order);
        uint256 runs;
        // Positions in calldata, and at most 200 runs.
        unchecked {
            desk.end = next + orders * OrderLib.RECORD;
            while (desk.next != desk.end) deltas[runs++] = _settleRun(desk);
        }
        assembly ("memory-safe") {
            mstore(deltas, runs)
        }
        SettlementCodec.finishLog(log, desk.logEnd);
    }

    /// @dev The records of one account that stand next to each other: its slot is read before them, judged and written after
    /// them. Returns the account's word for the bank.
    function _settleRun(Desk memory desk) private returns (bytes32) {
        PartTerms memory terms = desk.terms;
        address account = desk.order.maker;
        Word storage place = _state.positions[account];
        PositionLib.unpack(place.bits, terms.fundingIndex, desk.position);
        int256 delta;
        bool opened;
        // At most 200 records, and changes below 2^95.
        unchecked {
            do {
                if (_settleOrder(desk, terms)) opened = true;
                delta += desk.outcome.freeDelta;
                desk.next += OrderLib.RECORD;
                if (desk.next == desk.end) break;
                OrderLib.read(desk.next, desk.order);
            } while (desk.order.maker == account);
        }
        uint256 word = PositionLib.pack(desk.position, terms.fundingIndex, account);
        if (opened) MarginLib.requireInitial(desk.position, terms, account);
        place.bits = word;
        if (delta != int96(delta)) revert PositionOutOfRange(account);
        return bytes32((uint256(uint160(account)) << 96) | (uint256(delta) & type(uint96).max));
    }

    /// @dev One record: checks, signature, fill state, position, log. Returns whether it opened anything.
    function _settleOrder(Desk memory desk, PartTerms memory terms) private returns (bool opened) {
        OrderFill memory order = desk.order;
        FillOutcome memory outcome = desk.outcome;
        OrderLib.checkFill(order, terms);
        OrderLib.checkTerms(order, terms);
        OrderLib.requireSigner(_ACCOUNT_MANAGER, order, OrderLib.digest(order, terms), terms.asOf);
        if (desk.position.hasCancelFloor) _state.requireAboveFloor(order, terms.asOf);
        outcome.dead = _state.consume(order, terms.batchId, terms.asOf);
        opened = PositionLib.applyFill(desk.position, order, terms, outcome);
        if (outcome.freeDelta != int96(outcome.freeDelta)) {
            revert AmountOutOfRange(order.maker, order.salt, outcome.freeDelta);
        }
        PartTotals memory totals = desk.totals;
        // At most 200 fills below 2^48, with fees below 2^197.
        unchecked {
            totals.fees += outcome.fee;
            totals.taker += order.taker;
            if (order.buy) totals.bought += order.fill;
            else totals.sold += order.fill;
        }
        desk.logEnd = SettlementCodec.writeRecord(desk.logEnd, order, outcome);
    }

    // ------------------------------------------------------------------ actions

    /// @dev Places the part in the market's queue, checks price and report, and works out what all its orders share.
    function _beginPart(bytes calldata part, PartHeader memory header) private returns (PartTerms memory terms) {
        ActionLib.Action memory action = ActionLib.begin(_state, header.actionId, header.asOf, ActionKind.Batch);
        Parameters memory current = action.parameters;
        Reference memory last = action.reference_;
        bool binary = _KIND == MarketKind.BinaryFuture;
        if (_placePart(action.clock, header)) {
            BandLib.checkReport(header.asOf, header.oraclePrice, header.observedAt, last, current, binary);
            // Both fit their fields in calldata.
            last.oraclePrice = uint96(header.oraclePrice);
            last.observedAt = uint48(header.observedAt);
        } else if (header.oraclePrice != last.oraclePrice || header.observedAt != last.observedAt) {
            revert BatchTermsChanged(header.batchId);
        }
        _ORACLE.verify(_FEED_ID, header.oraclePrice, header.observedAt, SettlementCodec.proofOf(part, header));
        (uint256 lowest, uint256 highest) = BandLib.band(header.oraclePrice, _TICK, current, binary);
        if (header.price < lowest || header.price > highest) revert PriceOffBand(lowest, highest, header.price);
        if (header.makerFee > current.makerFee) revert FeeAboveSchedule(current.makerFee, header.makerFee);
        if (header.takerFee > current.takerFee) revert FeeAboveSchedule(current.takerFee, header.takerFee);
        ActionLib.save(_state, action);
        return _termsOf(header, current, last.fundingIndex, binary);
    }

    function _termsOf(PartHeader memory header, Parameters memory current, int256 fundingIndex, bool binary)
        private
        view
        returns (PartTerms memory terms)
    {
        uint256 price = header.price * _TICK;
        terms.domainSeparator = _domainSeparatorV4();
        terms.asOf = header.asOf;
        terms.batchId = header.batchId;
        terms.price = header.price;
        terms.tick = _TICK;
        terms.step = _STEP;
        // Whole by the listing rule.
        terms.tickStepValue = (_TICK * _STEP) / 1e18;
        terms.stepNotional = header.price * terms.tickStepValue;
        terms.oracleStepX = header.oraclePrice * _STEP;
        terms.makerFeePerStep = FeeLib.perStep(binary, price, _STEP, terms.stepNotional, header.makerFee);
        terms.takerFeePerStep = FeeLib.perStep(binary, price, _STEP, terms.stepNotional, header.takerFee);
        terms.maxLeverage = current.maxLeverage;
        terms.imr = current.imr;
        terms.fundingIndex = fundingIndex;
        terms.binary = binary;
    }

    /// @dev Opens the batch or continues it. Returns whether the part is its first.
    function _placePart(Clock memory clock_, PartHeader memory header) private pure returns (bool first) {
        if (header.batchId < clock_.batchId || header.batchId == 0) {
            revert BatchOutOfOrder(clock_.batchId, header.batchId);
        }
        first = header.batchId > clock_.batchId;
        uint256 expected = first ? 1 : uint256(clock_.part) + 1;
        if (header.part != expected || header.part > header.parts) revert PartOutOfOrder(expected, header.part);
        // Every field fits: the header carries them in the same widths.
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

    // ------------------------------------------------------------------ cancels

    /// @inheritdoc IIsolatedTrader
    function cancelSalts(uint256[] calldata salts) external {
        OrderDeskLib.cancelSalts(_state, _forwardedSender(), salts);
    }

    /// @inheritdoc IIsolatedTrader
    function cancelSaltsBelow(uint256 floor) external {
        OrderDeskLib.cancelSaltsBelow(_state, _forwardedSender(), floor);
    }

    // ------------------------------------------------------------------ management

    /// @inheritdoc IIsolatedTrader
    function proposeOperator(address operator) external restricted {
        if (_operators[operator] == OperatorStatus.None) _setOperator(operator, OperatorStatus.Proposed);
    }

    /// @inheritdoc IIsolatedTrader
    function acceptOperator() external {
        if (_operators[msg.sender] != OperatorStatus.Proposed) revert OperatorNotProposed(msg.sender);
        _setOperator(msg.sender, OperatorStatus.Approved);
    }

    /// @inheritdoc IIsolatedTrader
    function revokeOperator(address operator) external restricted {
        _setOperator(operator, OperatorStatus.None);
    }

    function _setOperator(address operator, OperatorStatus status) private {
        _operators[operator] = status;
        emit OperatorChanged(operator, status);
    }

    /// @inheritdoc IMarketChanges
    function scheduleParameters(Parameters calldata next, uint48 activeFrom) external restricted {
        ChangeLib.scheduleParameters(_state, _KIND, next, activeFrom);
    }

    /// @inheritdoc IMarketChanges
    function cancelScheduledParameters() external restricted {
        ChangeLib.cancelScheduledParameters(_state);
    }

    /// @inheritdoc IMarketChanges
    function scheduleMode(MarketMode mode, uint48 activeFrom) external restricted {
        ChangeLib.scheduleMode(_state, mode, activeFrom);
    }

    /// @inheritdoc IMarketChanges
    function restrictMode(MarketMode mode) external restricted {
        ChangeLib.restrictMode(_state, mode);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IIsolatedTrader
    function hashOrder(Order calldata order) external view returns (bytes32) {
        return OrderDeskLib.hashOrder(_domainSeparatorV4(), order);
    }

    /// @inheritdoc IIsolatedTrader
    function validateOrder(Order calldata order, bytes calldata signature, uint256 asOf)
        external
        view
        returns (bytes32 hash, address signer)
    {
        return OrderDeskLib.validateOrder(_state, _context(), order, signature, asOf);
    }

    /// @inheritdoc IIsolatedTrader
    function position(address account) public view returns (Position memory held) {
        PositionLib.unpack(_state.positions[account].bits, _state.reference_.fundingIndex, held);
    }

    /// @inheritdoc IIsolatedTrader
    function health(address account, uint256 price) external view returns (int256 equityX, uint256 notionalX) {
        return MarginLib.exposure(position(account), price * _STEP, _STEP, _KIND == MarketKind.BinaryFuture);
    }

    /// @inheritdoc IIsolatedTrader
    function saltState(address maker, uint256 salt) external view returns (SaltState) {
        return _state.stateOf(maker, salt);
    }

    /// @inheritdoc IIsolatedTrader
    function partialSlot(address maker, uint256 index)
        external
        view
        returns (uint256 salt, uint256 filled, uint256 batchId)
    {
        return _state.readSlot(maker, index);
    }

    /// @inheritdoc IIsolatedTrader
    function cancelFloor(address maker) external view returns (CancelFloor memory) {
        return _state.cancelFloors[maker];
    }

    /// @inheritdoc IIsolatedTrader
    function operatorStatus(address operator) external view returns (OperatorStatus) {
        return _operators[operator];
    }

    /// @inheritdoc IIsolatedTrader
    function clock() external view returns (Clock memory) {
        return _state.clock;
    }

    /// @inheritdoc IIsolatedTrader
    function lastReference() external view returns (Reference memory) {
        return _state.reference_;
    }

    /// @inheritdoc IIsolatedTrader
    function parameters() external view returns (Parameters memory) {
        return _state.parameters;
    }

    /// @inheritdoc IIsolatedTrader
    function pendingChange() external view returns (PendingChange memory) {
        return _state.pending;
    }

    /// @inheritdoc IIsolatedTrader
    function grid() public view returns (MarketGrid memory) {
        return MarketGrid({
            marketId: _MARKET_ID,
            kind: _KIND,
            tick: _TICK,
            step: _STEP,
            feedId: _FEED_ID,
            sessionFeedId: _SESSION_FEED_ID,
            finalLow: _FINAL_LOW,
            finalHigh: _FINAL_HIGH
        });
    }

    /// @inheritdoc IIsolatedTrader
    function bank() external view returns (address) {
        return address(_BANK);
    }

    /// @inheritdoc IIsolatedTrader
    function accountManager() external view returns (address) {
        return address(_ACCOUNT_MANAGER);
    }

    /// @inheritdoc IIsolatedTrader
    function oracle() external view returns (address) {
        return address(_ORACLE);
    }

    /// @inheritdoc IIsolatedTrader
    function marketDesk() external view returns (address) {
        return _DESK;
    }

    /// @inheritdoc IIsolatedTrader
    function domainSeparator() external view returns (bytes32) {
        return _domainSeparatorV4();
    }

    // ------------------------------------------------------------------ internals

    /// @inheritdoc MarketState
    function _context() internal view override returns (MarketContext memory) {
        return MarketContext({
            grid: grid(),
            bank: _BANK,
            accountManager: _ACCOUNT_MANAGER,
            oracle: _ORACLE,
            domainSeparator: _domainSeparatorV4()
        });
    }
}
