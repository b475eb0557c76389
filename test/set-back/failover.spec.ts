import { describeSetBack } from './suite';

describeSetBack('failover');
