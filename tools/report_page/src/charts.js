// The parts of Apache ECharts that the page uses; the bundler leaves the others out.
import * as echarts from 'echarts/core';
import {BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart} from 'echarts/charts';
import {DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent,
  VisualMapComponent, AriaComponent} from 'echarts/components';
import {SVGRenderer} from 'echarts/renderers';

echarts.use([BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart, DataZoomComponent, GridComponent,
  LegendComponent, MarkLineComponent, TooltipComponent, VisualMapComponent, AriaComponent, SVGRenderer]);

export {echarts};
